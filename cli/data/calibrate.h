/* calibrate.h — recorded inputs that a quantized model is measured on. */
#ifndef LNT_CLI_DATA_CALIBRATE_H
#define LNT_CLI_DATA_CALIBRATE_H

#include "cli/shell/args.h"
#include "runtime/linnet.h"

typedef struct lnt_calibration {
    lnt_texts paths;  /* a file or a folder of input_K.pb: a sample; a sound: one for each frame */
    size_t *frames;   /* of each path, once they are counted */
    lnt_tensor sound; /* the last one read */
    size_t sound_of;  /* its path */
} lnt_calibration;

/* Every word is a file, a folder of files, or a folder of test_data_set_N. Fails where nothing is found. */
lnt_status lnt_calibration_find(const lnt_texts *words, lnt_calibration *c, lnt_error *err);
/* lnt_quantize_options.count_samples: where the model's input has fixed extents a sound is cut into so many
 * frames, at most 256, and states are carried from one to the next. */
lnt_status lnt_calibration_count(void *arg, const lnt_model *m, size_t *n, lnt_error *err);
void lnt_calibration_free(lnt_calibration *c);
/* lnt_quantize_options.read_sample; arg is the lnt_calibration. Members of an .npz are called as the inputs
 * are; states that are not recorded are zeros. */
lnt_status lnt_calibration_read(void *arg, const lnt_model *m, size_t i, lnt_tensor *inputs, lnt_error *err);

#endif
