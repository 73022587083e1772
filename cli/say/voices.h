/* voices.h — where voices are. */
#ifndef LNT_CLI_SAY_VOICES_H
#define LNT_CLI_SAY_VOICES_H

#include "cli/shell/args.h"

/* The voice that speaks where none is named. */
#define LNT_DEFAULT_VOICE "robin"

/* A file, or what is called so, as .lnt or .onnx, in one of the folders (none given: the present one) or where the
 * program has its voices. name NULL: the default voice. NULL: there is none. */
const char *lnt_find_voice(const char *name, const lnt_texts *folders);

#endif
