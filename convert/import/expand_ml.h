/* expand_ml.h — what the files about ai.onnx.ml share: lists out of attributes, scores to labels and probabilities. */
#ifndef LNT_CONVERT_IMPORT_EXPAND_ML_H
#define LNT_CONVERT_IMPORT_EXPAND_ML_H

#include "base/checked.h"
#include "convert/import/expand.h"

enum { ML_MOST_FEATURES = 1 << 26 };

/* A list of numbers; empty where the attribute is missing. */
typedef struct ml_list {
    size_t n;
    const int64_t *i;       /* of ml_ints and ml_labels */
    const double *v;        /* of ml_reals */
    bool doubles;           /* they were a tensor of doubles */
    const lnt_words *words; /* what integers stand for; or NULL */
} ml_list;

/* INTS, or a tensor of integers. */
ml_list ml_ints(maker *m, const char *name);
/* FLOATS, or a tensor, under this name or with _as_tensor behind it. */
ml_list ml_reals(maker *m, const char *name);
/* Of the classes; those of text are numbered. */
ml_list ml_labels(maker *m);

void ml_fail(maker *m, const char *attribute, const char *what);
/* n zeroed elements in the graph's memory; NULL after a failure. */
void *ml_take(maker *m, size_t n, size_t size);
uint32_t ml_constant(maker *m, const char *what, lnt_dtype dtype, unsigned rank, const int64_t *dims,
                     const void *data);

/* Input 0 as [N, F] of this type. */
uint32_t ml_rows(maker *m, lnt_dtype type);
/* The node's attribute post_transform, of scores [N, C]. */
uint32_t ml_post_transform(maker *m, uint32_t scores);
/* Output 0: the label of the class whose score is highest, the first of equals; or, of two classes, the second where
 * score [N, 1] is above the threshold. */
void ml_label(maker *m, uint32_t scores, ml_list labels);
void ml_binary_label(maker *m, uint32_t score, double threshold, ml_list labels);
/* Output 1: the scores of both, of the second's [N, 1]. As in onnxruntime only post_transform LOGISTIC counts here. */
void ml_binary_scores(maker *m, uint32_t score, bool probability);

void lnt_expand_svm_classifier(maker *m);
void lnt_expand_svm_regressor(maker *m);
void lnt_expand_tree_classifier(maker *m);
void lnt_expand_tree_ensemble(maker *m);
void lnt_expand_tree_regressor(maker *m);

#endif
