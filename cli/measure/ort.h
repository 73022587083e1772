/* ort.h — a model run by ONNX Runtime's shared library, opened at run time: the other side of the paired benchmark. */
#ifndef LNT_CLI_MEASURE_ORT_H
#define LNT_CLI_MEASURE_ORT_H

#include "base/error.h"
#include "cli/shell/pipe.h"

typedef struct lnt_ort lnt_ort;

/* The library: the path given; else the one in the project's Python environment (.deps/venv below here or
 * below the program's folder), else NULL for the system's. */
const char *lnt_ort_find(const char *given);
/* Opens the library and checks its version. path NULL: by name, where the system keeps libraries. */
lnt_status lnt_ort_load(const char *path, lnt_ort **ort, lnt_error *err);
const char *lnt_ort_version(const lnt_ort *ort);
/* All optimizations or none; sequential, spinning as it does by default. */
lnt_status lnt_ort_open(lnt_ort *ort, const char *onnx, uint32_t threads, bool optimize, lnt_error *err);
/* Gives it the inputs, by name; their memory is used, not copied: that of states is written. */
lnt_status lnt_ort_set_inputs(lnt_ort *ort, const lnt_named *in, size_t n, lnt_error *err);
/* The first run lets it make the outputs, all others find them made. States are swapped afterwards. */
lnt_status lnt_ort_run(lnt_ort *ort, lnt_error *err);
size_t lnt_ort_output_count(const lnt_ort *ort);
/* Output i of the last run; its memory is the engine's. */
lnt_status lnt_ort_output(lnt_ort *ort, size_t i, lnt_named *out, lnt_error *err);
/* Are its sums of products of uint8 by int8 not exact on this CPU? Without VNNI its kernels for x86 add them in
 * pairs by vpmaddubsw, which saturates at int16. */
bool lnt_ort_saturates(void);

#endif
