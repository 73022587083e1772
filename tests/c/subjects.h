/* subjects.h — small models that between them use every part of the runtime, and inputs for them. */
#ifndef LNT_TESTS_SUBJECTS_H
#define LNT_TESTS_SUBJECTS_H

#include "base/memory.h"
#include "convert/convert.h"
#include "runtime/linnet.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct subject {
    const char *path;
    lnt_named_int dim[4];
    size_t n_dims;
    lnt_named_text state;
    lnt_named_int bound;       /*  */
    int64_t shortest, longest; /* extents for what is left open */
    bool winograd;
    int64_t integer;           /* contents of integer inputs; 0: ones and twos */
} subject;

static const subject subjects[] = {
    {"tests/data/models/attention.onnx", .shortest = 3, .longest = 9},
    {"tests/data/models/control.onnx", .bound = {"totals:0", 99}, .shortest = 3, .longest = 9},
    {"tests/data/models/image.onnx", .shortest = 3, .longest = 9},
    {"tests/data/models/lengths.onnx", .bound = {"each", 9}, .shortest = 3, .longest = 9},
    {"tests/data/models/rich.onnx", .shortest = 3, .longest = 9},
    {"tests/data/models/sequence.onnx", .state = {"next", "state"}, .shortest = 3, .longest = 9},
    {"tests/data/models/shapes.onnx", .bound = {"where:1", 99}, .shortest = 3, .longest = 9},
    {"tests/data/models/tiles.onnx", .winograd = true, .shortest = 3, .longest = 9},
    {".deps/silero_vad.onnx", .dim = {{"input:0", 1}, {"input:1", 576}, {"state:1", 1}}, .n_dims = 3,
     .state = {"stateN", "state"}, .integer = 16000},
};

enum { SUBJECTS = sizeof subjects / sizeof subjects[0], SUBJECT_ELEMENTS = 64 * 1024 };

/* A subject made ready; everything is one byte off its alignment. */
typedef struct converted {
    const subject *what;
    void *memory, *floats, *ints;
    const void *image;
    size_t size;
} converted;

/* Converts; skips the test where the model was not downloaded. */
static inline void subject_convert(const subject *what, converted *c)
{
    const lnt_convert_options how = {.opt = LNT_OPT_ALL,
                                     .dim = what->dim,
                                     .n_dims = what->n_dims,
                                     .winograd_budget = what->winograd ? INFINITY : 0,
                                     .state = &what->state,
                                     .n_states = what->state.name != NULL};
    lnt_report report;
    lnt_error err = {0};
    void *image;
    if (access(what->path, R_OK) != 0)
        skip();
    *c = (converted){.what = what};
    lnt_report_init(&report);
    if (lnt_convert_file(what->path, &how, &report, &image, &c->size, &err) != LNT_OK)
        fail_msg("%s: %s", what->path, err.message);
    lnt_report_free(&report);
    c->memory = malloc(c->size + 1);
    c->floats = malloc(SUBJECT_ELEMENTS * sizeof(float) + 1);
    c->ints = malloc(SUBJECT_ELEMENTS * sizeof(int64_t) + 1);
    assert_true(c->memory && c->floats && c->ints);
    c->image = memcpy((char *)c->memory + 1, image, c->size);
    lnt_free(&lnt_malloc_allocator, image);
    for (size_t i = 0; i < SUBJECT_ELEMENTS; i++) {
        const float x = sinf((float)i);
        const int64_t n = what->integer ? what->integer : 1 + (int64_t)(i % 2);
        memcpy((char *)c->floats + 1 + i * sizeof x, &x, sizeof x);
        memcpy((char *)c->ints + 1 + i * sizeof n, &n, sizeof n);
    }
}

static inline void subject_free(converted *c)
{
    free(c->memory);
    free(c->floats);
    free(c->ints);
}

/* Input i with the extents the model fixes, and extent for those it leaves open; false if it is a state. */
static inline bool subject_input(const converted *c, const lnt_model *model, uint32_t i, int64_t extent,
                                 lnt_tensor *t)
{
    lnt_value_info info;
    assert_int_equal(lnt_model_input(model, i, &info), LNT_OK);
    *t = (lnt_tensor){.dtype = info.dtype, .rank = info.rank, .bytes = lnt_dtype_size(info.dtype)};
    for (unsigned d = 0; d < info.rank; d++) {
        t->dims[d] = info.dims[d] < 0 ? extent : info.dims[d];
        t->bytes *= (size_t)t->dims[d];
    }
    assert_true(t->bytes <= SUBJECT_ELEMENTS * sizeof(float));
    t->data = (char *)(info.dtype == LNT_FLOAT ? c->floats : c->ints) + 1;
    return !info.is_state;
}

/* Goes on from a digest (at first SUBJECT_DIGEST) with a tensor's extents and bytes. */
#define SUBJECT_DIGEST UINT64_C(14695981039346656037)
static inline uint64_t subject_digest(uint64_t digest, const lnt_tensor *t)
{
    const uint8_t *bytes = t->data;
    for (unsigned d = 0; d < t->rank; d++)
        digest = (digest ^ (uint64_t)t->dims[d]) * 1099511628211u;
    for (size_t i = 0; i < t->bytes; i++)
        digest = (digest ^ bytes[i]) * 1099511628211u;
    return digest;
}

#endif
