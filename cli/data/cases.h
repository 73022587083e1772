/* cases.h — inputs and expected outputs: ONNX case folders and golden vectors. */
#ifndef LNT_CLI_DATA_CASES_H
#define LNT_CLI_DATA_CASES_H

#include "cli/data/model.h"

typedef struct lnt_case_output {
    lnt_tensor tensor; /* expected; of a sampled one: rank 1, the stored elements */
    uint64_t stride;   /* 0: whole; else element i * stride is stored at i */
    unsigned rank;     /* of the whole output, where sampled */
    int64_t dims[LNT_MAX_RANK];
    double tolerance; /* of golden vectors: relative to the largest magnitude; 0: the rule decides */
    int64_t element;  /* its place in a sequence, whose elements are outputs of their own; -1: in none */
} lnt_case_output;

typedef struct lnt_case {
    const char *name; /* of the folder, or "golden N" */
    lnt_tensor *in;   /* data NULL where there is none */
    lnt_case_output *out;
    uint32_t n_in, n_out;
    int64_t
        *length; /* per file of an input, as lnt_tensor_list has it: its tensors follow each other in `in` */
    uint32_t n_lengths;
    bool has_lists; /* sequences or optionals, among outputs too */
} lnt_case;

typedef struct lnt_cases {
    lnt_case *item;
    size_t n;
} lnt_cases;

/* Folders called test_data_set_* in folder, in the order of their numbers. */
lnt_status lnt_case_folders(const char *folder, lnt_texts *folders, lnt_error *err);
bool lnt_is_case_folder(const char *name);
/* input_K.pb and output_K.pb of each folder; sequences element by element. */
lnt_status lnt_cases_read(const lnt_texts *folders, lnt_cases *cases, lnt_error *err);
/* All golden vectors of a file. */
lnt_status lnt_cases_golden(const lnt_opened *o, lnt_cases *cases, lnt_error *err);
void lnt_cases_free(lnt_cases *cases);

/* Gives the session the case's inputs; states that the case has none of begin as they are. */
lnt_status lnt_case_set_inputs(const lnt_opened *o, lnt_session *s, const lnt_case *c, lnt_error *err);

#endif
