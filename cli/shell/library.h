/* library.h — shared libraries opened at run time. */
#ifndef LNT_CLI_SHELL_LIBRARY_H
#define LNT_CLI_SHELL_LIBRARY_H

#include "base/error.h"

/* Opens the library, by path or by the name the system knows it under, for as long as the program runs, and
 * finds a function in it. E_NOT_FOUND: no such library; E_UNSUPPORTED: no such function, or a program that
 * cannot open libraries; the message is the system's. */
lnt_status lnt_library_symbol(const char *path, const char *symbol, void **address, lnt_error *err);

#endif
