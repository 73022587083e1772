/* fault.h — one call to the system fails.
 *
 * fault.c takes the place of libc's functions: linked into a test, or loaded before a program by LD_PRELOAD, when
 * FAULT="CLASS KIND N" arms it and the file FAULT_LOG is created once the fault has happened. FAULT_CALLER is
 * a part of the name of the object whose calls alone count, FAULT_SPARED of one whose calls do not.
 *
 * classes: open read write stat map sync close rename thread process memory
 * kinds:   fail (the error that the class is known for), short (half of what was asked for), again (EINTR, once),
 *          full (like fail, and so do all calls of the class after it) */
#ifndef LNT_TESTS_FAULT_H
#define LNT_TESTS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Of the calls of the class the n-th one from now on, counted from 1, meets its fault. */
void fault_arm(const char *class, const char *kind, unsigned long n);
/* No faults from now on. Has there been one? */
bool fault_disarm(void);

/* From now on blocks are counted that objects take in whose names one of these words stands, parted by spaces. */
void fault_watch(const char *objects);
/* Of these: those that nobody has given back. */
size_t fault_blocks(void);

#endif
