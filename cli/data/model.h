/* model.h — opening the model a verb was given: an .lnt, or an .onnx that is converted in memory. */
#ifndef LNT_CLI_DATA_MODEL_H
#define LNT_CLI_DATA_MODEL_H

#include "base/clock.h"
#include "cli/shell/args.h"
#include "convert/convert.h"
#include "formats/lnt_file.h"
#include "runtime/linnet.h"

/* An opened model, and behind lnt_opened_file what its file says beyond the public API. */
typedef struct lnt_opened {
    lnt_model *model;
    void *image; /* of a model converted in memory, else NULL */
    size_t image_bytes;
    const char *path;
    lnt_blob blob;
    lnt_file file;
    bool have_file;
    double load_seconds;
} lnt_opened;

/* flags: LNT_LOAD_*. options are those of the conversion, NULL for all defaults. */
lnt_status lnt_opened_open(const char *path, const lnt_convert_options *options, uint32_t flags,
                           lnt_opened *o, lnt_error *err);
/* To be looked at only: operators that a host program has to bring are stood in for, and fail. */
lnt_status lnt_opened_look(const char *path, uint32_t flags, lnt_opened *o, lnt_error *err);
/* Is the node one of those? Names it if so. */
bool lnt_custom_node(const lnt_file *f, const lnt_rec_node *n, const char **domain, const char **name);
/* Loads an image that lnt_convert_* made; the opened model owns it. */
lnt_status lnt_opened_image(void *image, size_t bytes, lnt_opened *o, lnt_error *err);
/* Fills o->file. */
lnt_status lnt_opened_file(lnt_opened *o, lnt_error *err);
void lnt_opened_close(lnt_opened *o);

/* What goes behind a message that the model has no input or output called typed (cli/shell/suggest.h). */
const char *lnt_suggest_input(const lnt_opened *o, const char *typed);
const char *lnt_suggest_output(const lnt_opened *o, const char *typed);

/* LNT_E_LIMIT if the machine has no room for so many bytes of what. */
lnt_status lnt_room_for(uint64_t bytes, const char *what, lnt_error *err);
/* The one place where a status becomes an exit code. */
int lnt_exit_code(lnt_status status);
/* Prints the failure to stderr and gives its exit code. */
int lnt_failed(const lnt_verb *verb, const lnt_error *err);
/* All of a file as text, which the command line keeps. */
lnt_status lnt_read_text(const char *path, char **text, lnt_error *err);
bool lnt_ends_with(const char *text, const char *end);
/* Does path name an ONNX model? In builds without the converter, one that it cannot read either. */
bool lnt_names_onnx(const char *path);
/* The smallest first. */
void lnt_sort_figures(double *v, size_t n);
/* Their mean, and the standard deviation of what they are a sample of; n > 0. */
void lnt_mean_of(const double *v, size_t n, double *mean, double *std);

/* What a report lists as unsupported, in one line, each fault once. */
void lnt_unsupported_text(const lnt_report *report, char *buffer, size_t bytes);

#endif
