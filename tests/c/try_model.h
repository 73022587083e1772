/* try_model.h — loads and runs a model that may be nonsense, within narrow limits of memory and time. */
#ifndef TESTS_TRY_MODEL_H
#define TESTS_TRY_MODEL_H

#include "runtime/linnet.h"

enum { INPUT_BYTES = 1 << 16 };

/* Input i in `memory`, open extents taken as `open`. */
static lnt_status feed(lnt_model *m, lnt_session *s, uint32_t i, int64_t open, void *memory, lnt_error *err)
{
    lnt_value_info info;
    LNT_TRY(lnt_model_input(m, i, &info));
    lnt_tensor t = {.dtype = info.dtype, .rank = info.rank > LNT_MAX_RANK ? 1 : info.rank, .data = memory};
    size_t bytes = lnt_dtype_size(t.dtype);
    for (uint32_t k = 0; k < t.rank; k++) {
        t.dims[k] = k >= info.rank || info.dims[k] < 0 ? open : info.dims[k];
        if (t.dims[k] > INPUT_BYTES || (bytes *= (size_t)t.dims[k]) > INPUT_BYTES)
            return LNT_E_LIMIT;
    }
    t.bytes = bytes;
    return lnt_set_input(s, i, &t, err);
}

/* Sum of all output bytes, so that each is read; of states if asked to, which moves them. */
static uint64_t read_outputs(lnt_model *m, lnt_session *s, bool states)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < lnt_model_output_count(m); i++) {
        lnt_value_info info = {0};
        lnt_tensor t;
        if (lnt_model_output(m, i, &info) == LNT_OK && info.is_state && !states)
            continue;
        if (lnt_get_output(s, i, &t, NULL) == LNT_OK && t.data)
            for (size_t k = 0; k < t.bytes; k++)
                sum += ((const uint8_t *)t.data)[k];
    }
    return sum;
}

static bool is_state(const lnt_model *m, uint32_t i)
{
    lnt_value_info info = {0};
    return lnt_model_input(m, i, &info) == LNT_OK && info.is_state;
}

/* Runs twice, with other extents the second time where there are open ones; states go on. */
static lnt_status run_model(lnt_model *m, lnt_execution_mode mode, lnt_error *err)
{
    enum { MEMORY = 64 << 20, DEADLINE_US = 200000, EXTENT = 3, RUNS = 2 };
    static _Alignas(64) uint8_t zeros[INPUT_BYTES];
    const lnt_session_options options = {.struct_bytes = sizeof options,
                                         .intra_op_num_threads = 1,
                                         .inter_op_num_threads = 1,
                                         .execution_mode = mode,
                                         .memory_limit = MEMORY};
    lnt_session *s = NULL;
    lnt_status status = lnt_session_create(m, &options, &s, err);
    for (unsigned run = 0; status == LNT_OK && run < RUNS; run++) {
        for (uint32_t i = 0; status == LNT_OK && i < lnt_model_input_count(m); i++)
            if (run == 0 || !is_state(m, i))
                status = feed(m, s, i, EXTENT - (int64_t)run, zeros, err);
        lnt_set_deadline(s, DEADLINE_US);
        if (status == LNT_OK)
            status = lnt_run(s, err);
        if (status == LNT_OK)
            (void)read_outputs(m, s, run + 1 == RUNS);
    }
    lnt_session_destroy(&s);
    return status;
}

/* Loads, binds and runs the .lnt in memory; OK, or why not. */
static lnt_status try_model(const void *bytes, size_t size, lnt_execution_mode mode, lnt_error *err)
{
    lnt_model *m = NULL;
    const lnt_model_options options = {.struct_bytes = sizeof options};
    lnt_status status = lnt_model_from_memory(bytes, size, &options, &m, err);
    if (status == LNT_OK)
        status = run_model(m, mode, err);
    lnt_model_close(&m);
    return status;
}

#endif
