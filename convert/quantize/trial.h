/* trial.h — a trial: what quantized layers cost and gain, measured on runs of the model at conversion.
 *
 * The graph is emitted as it stands, loaded as a user would load it, and run on samples: recorded inputs, or
 * one seeded input where there are none. A trial goes through these stages, each in the file named:
 *
 *     float run      trial.c            the session stays open through the next three stages
 *       calibrate    trial_calibrate.c  on calibration samples: ranges of activations, rounding of weights
 *       reference    trial_run.c        on held-out samples: outputs of the float model are kept
 *       layers       quantize_layer.c   each layer alone, float against INT8, on what the last run has left
 *     choose         trial_choose.c     runs with the chosen layers in INT8; layers go back to float until
 *                                       every output has the SNR that was asked for
 *     report         trial.c */
#ifndef LNT_CONVERT_QUANTIZE_TRIAL_H
#define LNT_CONVERT_QUANTIZE_TRIAL_H

#include "convert/quantize/quantize_noise.h"
#include "convert/quantize/quantize_samples.h"
#include "convert/quantize/quantize_static.h"

/* Why what an output of the float model is measured by says nothing, or little. */
typedef enum lnt_flaw {
    LNT_FLAW_NONE,
    LNT_FLAW_EMPTY,
    LNT_FLAW_NAN,
    LNT_FLAW_INFINITE,
    LNT_FLAW_NOISE, /* another seed of random operators gives another output */
    LNT_FLAW_ZERO,
    LNT_FLAW_CONSTANT
} lnt_flaw;

typedef struct lnt_trial {
    lnt_graph *g;
    const lnt_quantize_options *options;
    lnt_qlayers *layers;
    lnt_report *report;
    lnt_error *err;
    lnt_samples samples;
    uint32_t n_outputs; /* of the model, or the inner values to be measured instead */
    bool inner;
    const char **name;  /* [outputs] */
    lnt_tensor *want;   /* [samples][outputs] of the float model, copies */
    lnt_flaw *flaw;     /* [outputs] of the float model */
    bool blind;         /* there are outputs of floats, and none that a bound can hold for */
    lnt_noise *noise;   /* [outputs] of the last run */
    lnt_seen *seen;     /* [values] in the calibration samples; NULL unless static */
    size_t done, total; /* of the work, as far as it is foreseen */
} lnt_trial;

/* The graph as a model that runs. Zeros: nothing. */
typedef struct lnt_trial_model {
    void *image;
    lnt_model *model;
    lnt_session *session;
} lnt_trial_model;

/* ---- trial_run.c ---- */
/* Progress, as the options want it told: so many steps more to come; one of them is done. */
void lnt_trial_expect(lnt_trial *t, size_t steps);
void lnt_trial_advance(lnt_trial *t);

/* What sample i is for. Of recorded inputs every fourth, or the last of a few, is held out for measuring; a
 * single one serves for both. */
bool lnt_trial_is_held_out(const lnt_trial *t, size_t i);
bool lnt_trial_calibrates_on(const lnt_trial *t, size_t i);

/* Emits and loads the graph as it stands. Stopped in any case. */
lnt_status lnt_trial_start(lnt_trial *t, lnt_trial_model *r);
void lnt_trial_stop(lnt_trial *t, lnt_trial_model *r);
/* For the float model, once: reads the samples and makes room for the outputs. */
lnt_status lnt_trial_prepare(lnt_trial *t, lnt_trial_model *r);
/* Runs the float model on the held-out samples, keeps its outputs, and finds their flaws. */
lnt_status lnt_trial_run_reference(lnt_trial *t, lnt_trial_model *r);

/* Gives the graph's nodes the forms that are chosen. */
lnt_status lnt_trial_put_forms(const lnt_qlayers *layers);
/* Runs the model with these on the held-out samples: t->noise, and the lowest SNR of an output. */
lnt_status lnt_trial_run_chosen(lnt_trial *t, double *snr);
/* Can a bound hold for output i? Not for noise, nor for what is no number. */
bool lnt_trial_can_judge(const lnt_trial *t, uint32_t i);
/* How far the outputs of the last run are below the bound, all together. */
double lnt_trial_missing_db(const lnt_trial *t);

/* ---- trial_calibrate.c ---- */
/* Runs the float model on the calibration samples: ranges of the static layers' activations, and weights
 * rounded for what the layers read. Nothing without recorded inputs. */
lnt_status lnt_trial_calibrate(lnt_trial *t, lnt_trial_model *r);
/* Ranges again, by the method with which the outputs are nearest to the bound, or farthest above it; after
 * lnt_trial_run_reference. */
lnt_status lnt_trial_choose_method(lnt_trial *t);
void lnt_trial_forget_rounding(lnt_trial *t);

/* ---- trial_choose.c ---- */
/* Takes layers back to float: those that are slower in INT8 than options->at_most allows, then as few as
 * options->min_snr needs. */
lnt_status lnt_trial_choose(lnt_trial *t);

#endif
