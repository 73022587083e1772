/* fuzz.h — what the fuzz targets share. A target is linked with libFuzzer to find inputs, or with replay.c to
 * try the inputs there are. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "base/error.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
/* A target may have mutators of its own; LLVMFuzzerMutate is what the driver lends them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

static inline void fuzz_fail(const char *what)
{
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

static inline void fuzz_too_long(int signal)
{
    (void)signal;
    abort(); /* whose stack says where the time goes */
}

/* From here an input may take so many seconds of the processor, however busy the machine is with others. */
static inline void fuzz_begin(int seconds)
{
    const struct itimerval limit = {.it_value.tv_sec = seconds};
    signal(SIGPROF, fuzz_too_long);
    setitimer(ITIMER_PROF, &limit, NULL);
}

/* A failure must be a user's, and say what is wrong. */
static inline void fuzz_judge(lnt_status status, const lnt_error *err)
{
    if (status == LNT_E_INTERNAL)
        fuzz_fail(err->message);
    if (status != LNT_OK && status != LNT_E_LIMIT && !err->message[0])
        fuzz_fail("a failure without a message");
}

/* A copy at a multiple of 64, exactly as long, so that a sanitizer sees what reads past it; freed with free. */
static inline uint8_t *fuzz_copy(const uint8_t *bytes, size_t size)
{
    void *copy = NULL;
    if (posix_memalign(&copy, 64, size ? size : 1) != 0)
        fuzz_fail("out of memory");
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

/* Reads a tensor to its end. */
static inline void fuzz_read(const lnt_tensor *t)
{
    volatile uint8_t sum = 0; /* no compiler can tell that nobody asks */
    for (size_t i = 0; t->data && i < t->bytes; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)t->data)[i]);
}

#endif
