/* fuzz.h — what the fuzz targets share. A target is linked with libFuzzer to find inputs, or with replay.c to
 * try the inputs there are. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "base/error.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline void fuzz_fail(const char *what)
{
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

/* A failure must be a user's, and say what is wrong. */
static inline void fuzz_judge(lnt_status status, const lnt_error *err)
{
    if (status == LNT_E_INTERNAL)
        fuzz_fail(err->message);
    if (status != LNT_OK && status != LNT_E_LIMIT && !err->message[0])
        fuzz_fail("a failure without a message");
}

#endif
