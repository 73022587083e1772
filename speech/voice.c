/* voice.c — a voice: a session of its model, and sentences that become sound. */
#include "base/checked.h"
#include "base/utf8.h"
#include "formats/hash.h"
#include "runtime/internal.h"
#include "speech/markup/ssml.h"
#include "speech/parts.h"
#include "speech/sound/pitch.h"
#include "speech/windows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum voice_input { INPUT_IDS, INPUT_LENGTHS, INPUT_SCALES, INPUT_SPEAKER, N_INPUTS } voice_input;

struct lnt_voice {
    lnt_session *session;
    int at[N_INPUTS];  /* number of the model's input; -1: it has none */
    bool short_scales; /* two of them: noise and length */
    uint32_t output;
    lnt_windows windows; /* value NULL: sentences are computed as a whole */
    lnt_voice_config config;
    lnt_bump fixed, passing; /* what lives as long as the voice; as long as a text */
    lnt_script script;
    lnt_espeak espeak;
    lnt_lexicon_file lexicon; /* of a voice of ARPAbet */
    int16_t *pcm;             /* of a sentence */
    size_t pcm_room;
    lnt_pitch pitch;      /* of the present run of the model */
    lnt_parts parts;      /* of the last text spoken */
    int durations;        /* number of that output, of which marks are made; -1: there is none */
    lnt_voice_mark *mark; /* an lnt_grow array */
    size_t n_marks, marks_room, emitted; /* emitted: samples of the last text so far */
    uint64_t hash;                       /* of model and configuration */
};

/* ---- opening ---- */

static const struct {
    const char *name;
    lnt_dtype dtype;
    uint32_t rank;
    bool optional;
} inputs[N_INPUTS] = {{"input", LNT_INT64, 2, false},
                      {"input_lengths", LNT_INT64, 1, true},
                      {"scales", LNT_FLOAT, 1, true},
                      {"sid", LNT_INT64, 1, true}};

static lnt_status find_input(lnt_voice *v, const lnt_model *model, voice_input k, lnt_error *err)
{
    lnt_value_info info;
    const int at = v->at[k] = lnt_model_find_input(model, inputs[k].name);
    LNT_REQUIRE(at >= 0 || inputs[k].optional, err, LNT_E_ARGUMENT,
                "the model has no input called %s: it is no voice with Piper's interface", inputs[k].name);
    if (at < 0)
        return LNT_OK;
    LNT_TRY(lnt_model_input(model, (uint32_t)at, &info));
    LNT_REQUIRE(info.dtype == inputs[k].dtype && info.rank == inputs[k].rank, err, LNT_E_TYPE,
                "the model's input %s is not %s of rank %u: it is no voice with Piper's interface", info.name,
                lnt_dtype_text(inputs[k].dtype), inputs[k].rank);
    v->short_scales |= k == INPUT_SCALES && info.dims[0] == 2;
    return LNT_OK;
}

/* Every input must be one that is fed. */
static lnt_status find_inputs(lnt_voice *v, const lnt_model *model, lnt_error *err)
{
    for (voice_input k = 0; k < N_INPUTS; k++)
        LNT_TRY(find_input(v, model, k, err));
    for (uint32_t i = 0; i < lnt_model_input_count(model); i++) {
        lnt_value_info info;
        bool known = false;
        LNT_TRY(lnt_model_input(model, i, &info));
        for (voice_input k = 0; k < N_INPUTS; k++)
            known |= v->at[k] == (int)i;
        LNT_REQUIRE(known || info.is_state, err, LNT_E_ARGUMENT,
                    "the model's input %s is none of Piper's interface", info.name);
    }
    LNT_REQUIRE(v->config.n_speakers == 1 || v->at[INPUT_SPEAKER] >= 0, err, LNT_E_ARGUMENT,
                "the voice has %u speakers, but its model no input called sid", v->config.n_speakers);
    return LNT_OK;
}

static lnt_status find_output(lnt_voice *v, const lnt_model *model, lnt_error *err)
{
    lnt_value_info info = {0};
    const int named = lnt_model_find_output(model, "output");
    v->output = named >= 0 ? (uint32_t)named : 0;
    (void)lnt_model_output(model, v->output, &info);
    LNT_REQUIRE(info.dtype == LNT_FLOAT, err, LNT_E_TYPE, "the model's first output is no sound: not float");
    v->durations = v->windows.value ? -1 : lnt_model_find_output(model, "durations");
    if (v->durations >= 0)
        LNT_TRY(lnt_model_output(model, (uint32_t)v->durations, &info));
    if (info.dtype != LNT_INT64)
        v->durations = -1;
    return LNT_OK;
}

static lnt_status find_config(const lnt_model *model, const char *given, const char **text, lnt_error *err)
{
    *text = given ? given : lnt_voice_metadata(model, LNT_VOICE_CONFIG_KEY);
    LNT_REQUIRE(
        *text, err, LNT_E_NOT_FOUND,
        "the model says nothing of its voice: convert it with --config VOICE.onnx.json, or give that file");
    return LNT_OK;
}

/* A voice of ARPAbet reads by what its model has attached. */
static lnt_status find_lexicon(lnt_voice *v, const lnt_model *model, lnt_error *err)
{
    const void *data;
    size_t bytes;
    if (!v->config.arpabet)
        return LNT_OK;
    LNT_REQUIRE(lnt_model_attachment(model, LNT_LEXICON_ATTACHMENT, &data, &bytes) == LNT_OK, err,
                LNT_E_NOT_FOUND,
                "the voice reads English by a lexicon, and its model has none: convert it with --attach "
                "lexicon=FILE");
    return lnt_lexicon_read(data, bytes, &v->lexicon, err);
}

static lnt_status copy_text(lnt_voice *v, const char *text, const char **copy, lnt_error *err)
{
    *copy = text ? lnt_bump_string(&v->fixed, text, strlen(text), err) : NULL;
    return text && !*copy ? LNT_E_MEMORY : LNT_OK;
}

static lnt_status open_session(lnt_voice *v, lnt_model *model, const lnt_session_options *options,
                               lnt_error *err)
{
    LNT_TRY(lnt_session_create(model, options, &v->session, err));
    if (v->windows.value)
        return lnt_keep_value(v->session, v->windows.value, err);
    if (lnt_model_output_count(model) == 1)
        return LNT_OK;
    const uint32_t wanted[] = {v->output, (uint32_t)v->durations};
    return lnt_select_outputs(v->session, wanted, v->durations >= 0 ? 2 : 1, err);
}

static uint64_t hash_of(const lnt_model *model, const char *config)
{
    const uint64_t of[] = {lnt_model_hash(model), lnt_hash(config, strlen(config))};
    return lnt_hash(of, sizeof of);
}

static lnt_status open_voice(lnt_voice *v, lnt_model *model, const lnt_voice_options *given, lnt_error *err)
{
    lnt_voice_options o;
    const char *config;
    LNT_TRY(lnt_take_struct(given, &o, sizeof o, "lnt_voice_options", err));
    LNT_TRY(find_config(model, o.config, &config, err));
    const lnt_status status = lnt_voice_config_read(config, strlen(config), &v->fixed, &v->config, err);
    if (status != LNT_OK)
        lnt_error_prefix(err, "the voice's configuration: ");
    LNT_TRY(status);
    v->hash = hash_of(model, config);
    LNT_TRY(find_lexicon(v, model, err));
    LNT_TRY(find_inputs(v, model, err));
    v->espeak.voice = v->config.espeak;
    LNT_TRY(copy_text(v, o.espeak ? o.espeak : "espeak-ng", &v->espeak.program, err));
    LNT_TRY(copy_text(v, o.espeak_data, &v->espeak.data, err));
    if (!o.whole)
        LNT_TRY(lnt_windows_open(&v->windows, model, v->config.rate, o.window, err));
    LNT_TRY(find_output(v, model, err));
    return open_session(v, model, o.session, err);
}

lnt_status lnt_voice_create(lnt_model *model, const lnt_voice_options *options, lnt_voice **voice,
                            lnt_error *err)
{
    *voice = NULL;
    lnt_voice *v = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *v, err);
    if (!v)
        return LNT_E_MEMORY;
    lnt_bump_init(&v->fixed, &lnt_malloc_allocator);
    lnt_bump_init(&v->passing, &lnt_malloc_allocator);
    const lnt_status status = open_voice(v, model, options, err);
    if (status != LNT_OK)
        lnt_voice_destroy(&v);
    *voice = v;
    return status;
}

void lnt_voice_destroy(lnt_voice **voice)
{
    lnt_voice *v = voice ? *voice : NULL;
    if (!v)
        return;
    lnt_session_destroy(&v->session);
    lnt_espeak_free(&v->espeak);
    lnt_script_free(&v->script);
    lnt_parts_free(&v->parts);
    lnt_windows_free(&v->windows);
    lnt_pitch_free(&v->pitch);
    lnt_free(&lnt_malloc_allocator, v->pcm);
    lnt_free(&lnt_malloc_allocator, v->mark);
    lnt_bump_free(&v->passing);
    lnt_bump_free(&v->fixed);
    lnt_free(&lnt_malloc_allocator, v);
    *voice = NULL;
}

lnt_status lnt_voice_get_info(const lnt_voice *voice, lnt_voice_info *info, lnt_error *err)
{
    const lnt_voice_config *c = &voice->config;
    const size_t known = info->struct_bytes;
    const lnt_voice_info all = {known, c->rate, c->n_speakers, (uint32_t)c->n_named, c->espeak};
    LNT_TRY(lnt_check_struct_bytes(known, "lnt_voice_info", err));
    memcpy(info, &all, known < sizeof all ? known : sizeof all);
    return LNT_OK;
}

lnt_status lnt_voice_speaker(const lnt_voice *voice, uint32_t k, const char **name, int64_t *id)
{
    if (k >= voice->config.n_named)
        return LNT_E_ARGUMENT;
    *name = voice->config.speaker[k].name;
    *id = voice->config.speaker[k].id;
    return LNT_OK;
}

/* ---- sentences ---- */

/* Numbers with blanks between them. */
static lnt_status read_ids(lnt_voice *v, const char *text, lnt_voice_sentence *to, lnt_error *err)
{
    int64_t *id = lnt_bump_alloc(&v->passing, (strlen(text) / 2 + 1) * sizeof *id, err);
    if (!id)
        return LNT_E_MEMORY;
    to->phonemes = "";
    to->ids = id;
    for (const char *at = text; *(at += strspn(at, " \t\r\n,"));) {
        int64_t value = 0;
        const size_t digits = strspn(at, "0123456789");
        LNT_REQUIRE(digits && digits < 10, err, LNT_E_VALUE,
                    "ids are whole numbers with blanks between them");
        for (size_t i = 0; i < digits; i++)
            value = value * 10 + (at[i] - '0');
        id[to->n_ids++] = value;
        at += digits;
    }
    return LNT_OK;
}

static lnt_status write_phonemes(lnt_voice *v, const uint32_t *code, size_t n, const char **text,
                                 lnt_error *err)
{
    char *to = lnt_bump_alloc(&v->passing, 4 * n + 1, err);
    if (!to)
        return LNT_E_MEMORY;
    *text = to;
    for (size_t i = 0; i < n; i++)
        to += lnt_utf8_put(code[i], to);
    return LNT_OK;
}

/* Symbols [first, end) of the script as a sentence. */
static lnt_status make_sentence(lnt_voice *v, size_t first, size_t end, lnt_voice_sentence *to,
                                lnt_error *err)
{
    const uint32_t *code = v->script.code + first;
    int64_t *ids;
    LNT_ASSERT(first < end && end <= v->script.n);
    LNT_TRY(lnt_symbol_ids(&v->config, code, end - first, &v->passing, &ids, &to->n_ids, &to->missing, err));
    to->ids = ids;
    return write_phonemes(v, code, end - first, &to->phonemes, err);
}

static size_t begin_of(const lnt_script *s, size_t k)
{
    return k ? s->end[k - 1] : 0;
}

/* Takes a text of any form but ids apart. */
static lnt_status read_script(lnt_voice *v, const char *text, lnt_voice_form form, lnt_error *err)
{
    lnt_bump_reset(&v->passing);
    return lnt_script_read(&v->script, &v->config, &v->espeak, &v->lexicon, form, text, &v->passing, err);
}

/* NULL: none has that id. */
static const lnt_symbol *symbol_with_id(const lnt_voice_config *c, int64_t id)
{
    for (size_t i = 0; i < c->n_symbols; i++)
        for (uint32_t k = 0; k < c->symbol[i].n; k++)
            if (c->id[c->symbol[i].first + k] == id)
                return &c->symbol[i];
    return NULL;
}

static bool has_id(const lnt_voice_config *c, const lnt_symbol *symbol, int64_t id)
{
    return symbol->n && c->id[symbol->first] == id;
}

/* The symbol that sounds; NULL: the id pads, begins or ends a sentence, or is none's. */
static const lnt_symbol *sounding_symbol(const lnt_voice_config *c, int64_t id)
{
    const bool silent = has_id(c, &c->pad, id) || has_id(c, &c->begin, id) || has_id(c, &c->end, id);
    return silent ? NULL : symbol_with_id(c, id);
}

/* A run of a text with markup, behind those before it; *sentence: did they end with one? */
static lnt_status plan_run(lnt_voice *v, const lnt_ssml_run *run, const lnt_say_options *how, bool *sentence,
                           lnt_error *err)
{
    lnt_parts *to = &v->parts;
    const size_t before = to->n;
    size_t end = strlen(run->text);
    LNT_TRY(lnt_script_read(&v->script, &v->config, &v->espeak, &v->lexicon, LNT_VOICE_TEXT, run->text,
                            &v->passing, err));
    LNT_TRY(lnt_parts_plan(to, &v->script, &v->config, how, lnt_voice_streams(v), &v->passing, err));
    if (to->n > before && before && *sentence)
        to->part[before - 1].ends_a_sentence = true;
    if (to->n == before && run->silence > 0) {
        LNT_TRY(LNT_GROW(&lnt_malloc_allocator, to->part, to->room, to->n, err));
        to->part[to->n++] = (lnt_part){0};
    }
    for (size_t i = before; i < to->n; i++) {
        to->part[i].rate = run->rate;
        to->part[i].volume = run->volume;
        to->part[i].pitch = run->pitch;
    }
    if (to->n > before)
        to->part[to->n - 1].silence += run->silence;
    while (end && strchr(" \t\r\n", run->text[end - 1]))
        end--;
    if (end)
        *sentence = strchr(".?!", run->text[end - 1]) != NULL;
    return LNT_OK;
}

static lnt_status plan_ssml(lnt_voice *v, const char *text, const lnt_say_options *how, lnt_error *err)
{
    const lnt_ssml_run *run;
    size_t n;
    bool sentence = false;
    lnt_bump_reset(&v->passing);
    LNT_TRY(lnt_ssml_read(text, &v->passing, &run, &n, err));
    for (size_t i = 0; i < n; i++)
        LNT_TRY(plan_run(v, &run[i], how, &sentence, err));
    return LNT_OK;
}

/* The symbols of ids, without those that pad, begin and end. */
static lnt_status symbols_of_ids(lnt_voice *v, const int64_t *ids, size_t n, const char **text,
                                 lnt_error *err)
{
    char *to = lnt_bump_alloc(&v->passing, 4 * n + 1, err);
    if (!to)
        return LNT_E_MEMORY;
    *text = to;
    for (size_t i = 0; i < n; i++) {
        const lnt_symbol *symbol = sounding_symbol(&v->config, ids[i]);
        if (symbol)
            to += lnt_utf8_put(symbol->code, to);
    }
    *to = '\0';
    return LNT_OK;
}

/* Those of a text with markup are what is spoken in one. */
static lnt_status marked_sentences(lnt_voice *v, const char *text, const lnt_voice_sentence **sentence,
                                   size_t *n, lnt_error *err)
{
    lnt_say_options how;
    lnt_voice_defaults(v, &how);
    v->parts.n = v->parts.missing = 0;
    LNT_TRY(plan_ssml(v, text, &how, err));
    lnt_voice_sentence *to = lnt_bump_alloc(&v->passing, (v->parts.n + 1) * sizeof *to, err);
    if (!to)
        return LNT_E_MEMORY;
    *sentence = to;
    for (size_t i = 0; i < v->parts.n; i++) {
        const lnt_part *part = &v->parts.part[i];
        if (!part->n_ids)
            continue;
        to[*n] = (lnt_voice_sentence){.ids = part->ids, .n_ids = part->n_ids};
        LNT_TRY(symbols_of_ids(v, part->ids, part->n_ids, &to[(*n)++].phonemes, err));
    }
    return LNT_OK;
}

lnt_status lnt_voice_sentences(lnt_voice *v, const char *text, lnt_voice_form form,
                               const lnt_voice_sentence **sentence, size_t *n, lnt_error *err)
{
    *n = 0;
    if (form == LNT_VOICE_TEXT && lnt_is_ssml(text))
        return marked_sentences(v, text, sentence, n, err);
    if (form == LNT_VOICE_IDS)
        lnt_bump_reset(&v->passing);
    else
        LNT_TRY(read_script(v, text, form, err));
    const size_t most = form == LNT_VOICE_IDS ? 1 : v->script.n_sentences;
    lnt_voice_sentence *to = lnt_bump_alloc(&v->passing, (most + 1) * sizeof *to, err);
    if (!to)
        return LNT_E_MEMORY;
    *sentence = to;
    if (form == LNT_VOICE_IDS)
        return read_ids(v, text, &to[(*n)++], err);
    for (size_t k = 0; k < most; k++)
        if (v->script.end[k] > begin_of(&v->script, k))
            LNT_TRY(make_sentence(v, begin_of(&v->script, k), v->script.end[k], &to[(*n)++], err));
    return LNT_OK;
}

/* ---- sound ---- */

/* One lnt_voice_say. */
typedef struct speech {
    lnt_voice *voice;
    lnt_say_options how;
    lnt_voice_emit emit;
    void *user;
    lnt_error *err;
    uint64_t part;   /* of sentences, spoken so far */
    float scales[3]; /* the session reads them in the run */
} speech;

static lnt_status set_input(lnt_voice *v, voice_input k, uint32_t rank, int64_t n, const void *data,
                            lnt_error *err)
{
    lnt_tensor t = {.dtype = inputs[k].dtype, .rank = rank, .dims = {n}, .data = (void *)(uintptr_t)data};
    if (v->at[k] < 0)
        return LNT_OK;
    if (rank == 2) {
        t.dims[0] = 1;
        t.dims[1] = n;
    }
    t.bytes = (size_t)n * lnt_dtype_size(t.dtype);
    return lnt_set_input(v->session, (uint32_t)v->at[k], &t, err);
}

static lnt_status set_inputs(speech *s, const int64_t *ids, const int64_t *n_ids)
{
    lnt_voice *v = s->voice;
    memcpy(s->scales, (const float[]){s->how.noise, s->how.length * s->how.pitch, s->how.noise_w},
           sizeof s->scales);
    LNT_TRY(set_input(v, INPUT_IDS, 2, *n_ids, ids, s->err));
    LNT_TRY(set_input(v, INPUT_LENGTHS, 1, 1, n_ids, s->err));
    LNT_TRY(set_input(v, INPUT_SCALES, 1, v->short_scales ? 2 : 3, s->scales, s->err));
    LNT_TRY(set_input(v, INPUT_SPEAKER, 1, 1, &s->how.speaker, s->err));
    lnt_set_seed(v->session, s->how.seed + s->part++);
    return LNT_OK;
}

/* The largest magnitude of x[0..n), NaN if there is one. */
static float peak_of(const float *x, size_t n)
{
    float peak = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= peak))
            peak = fabsf(x[i]);
    return peak;
}

/* What samples are divided by. Pieces cannot know of the sentence's peak: their gain is the voice's. */
static float divisor_of(const speech *s, float peak)
{
    if (s->how.as_computed)
        return 1;
    return s->voice->windows.value ? 1 / s->voice->windows.gain : peak;
}

/* As Piper does it: divided by the peak, times the volume, cut off at 1, and of 32,767 steps the one toward 0. */
static lnt_status to_pcm(speech *s, const float *x, size_t n)
{
    static const float SILENT = 1e-8f, STEPS = 32767;
    const float peak = peak_of(x, n);
    LNT_REQUIRE(peak <= 1e30f, s->err, LNT_E_VALUE, "the voice's model computes no finite sound");
    LNT_TRY(LNT_RENEW(&lnt_malloc_allocator, s->voice->pcm, s->voice->pcm_room, n, s->err));
    LNT_ASSERT(n <= s->voice->pcm_room);
    const float divisor = divisor_of(s, peak);
    for (size_t i = 0; i < n; i++) {
        const float y = divisor < SILENT ? 0 : x[i] / divisor * s->how.volume;
        s->voice->pcm[i] = (int16_t)(fmaxf(fminf(y, 1), -1) * STEPS);
    }
    return LNT_OK;
}

static lnt_status send(speech *s, const int16_t *pcm, size_t n)
{
    s->voice->emitted += n;
    LNT_REQUIRE(!n || s->emit(s->user, pcm, n) == 0, s->err, LNT_E_CANCELLED,
                "stopped by who receives the sound");
    return LNT_OK;
}

static lnt_status send_silence(speech *s, double seconds)
{
    static const int16_t silence[1024];
    const size_t most = sizeof silence / sizeof *silence;
    for (size_t left = (size_t)(seconds * s->voice->config.rate); left > 0;) {
        const size_t n = left < most ? left : most;
        LNT_TRY(send(s, silence, n));
        left -= n;
    }
    return LNT_OK;
}

/* last: of the run. */
static lnt_status say_samples(speech *s, const float *x, size_t n, bool last)
{
    if (s->how.pitch != 1)
        LNT_TRY(lnt_pitch_feed(&s->voice->pitch, x, n, last, &x, &n, s->err));
    LNT_TRY(to_pcm(s, x, n));
    return send(s, s->voice->pcm, n);
}

/* An lnt_windows_emit. */
static lnt_status say_window(void *user, const float *x, size_t n)
{
    return say_samples(user, x, n, false);
}

/* The next n samples, from `at` on, are what the model makes of id. Those of a pad belong to the symbol before it;
 * begin and end of a sentence have no mark. */
static lnt_status add_mark(lnt_voice *v, int64_t id, size_t at, size_t n, lnt_error *err)
{
    const lnt_voice_config *c = &v->config;
    if (has_id(c, &c->pad, id) && v->n_marks &&
        v->mark[v->n_marks - 1].first + v->mark[v->n_marks - 1].n == at)
        v->mark[v->n_marks - 1].n += n;
    const lnt_symbol *symbol = sounding_symbol(c, id);
    if (!symbol)
        return LNT_OK;
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, v->mark, v->marks_room, v->n_marks, err));
    lnt_voice_mark *mark = &v->mark[v->n_marks++];
    *mark = (lnt_voice_mark){.first = at, .n = n};
    lnt_utf8_put(symbol->code, mark->symbol);
    return LNT_OK;
}

/* Marks of a run whose sound has n samples before its pitch is changed, and is not emitted yet. */
static lnt_status add_marks(lnt_voice *v, const int64_t *ids, size_t n_ids, size_t n, double pitch,
                            lnt_error *err)
{
    lnt_tensor t; /* [1, ids], int64, frames */
    size_t frames = 0, before = 0;
    LNT_TRY(lnt_get_output(v->session, (uint32_t)v->durations, &t, err));
    const int64_t *frame = t.data;
    bool fits = t.bytes == n_ids * sizeof *frame;
    for (size_t i = 0; fits && i < n_ids; i++) {
        fits = frame[i] >= 0 && (uint64_t)frame[i] <= n;
        frames += fits ? (size_t)frame[i] : 0;
    }
    LNT_REQUIRE(fits && frames <= n, err, LNT_E_SHAPE,
                "the model's output durations does not tell how long each id sounds");
    const double hop = frames ? (double)(n / frames) / pitch : 0;
    for (size_t i = 0; i < n_ids; before += (size_t)frame[i++]) {
        const size_t at = (size_t)((double)before * hop),
                     end = (size_t)((double)(before + (size_t)frame[i]) * hop);
        LNT_TRY(add_mark(v, ids[i], v->emitted + at, end - at, err));
    }
    return LNT_OK;
}

static lnt_status say_ids(speech *s, const int64_t *ids, size_t n_ids)
{
    lnt_voice *v = s->voice;
    const int64_t length = (int64_t)n_ids;
    lnt_tensor sound; /* [.., samples], float */
    LNT_REQUIRE(s->how.pitch >= 0.25f && s->how.pitch <= 4, s->err, LNT_E_VALUE,
                "the pitch is from a quarter to four times the voice's, not %g times", (double)s->how.pitch);
    if (s->how.pitch != 1)
        LNT_TRY(lnt_pitch_begin(&v->pitch, s->how.pitch, s->err));
    LNT_TRY(set_inputs(s, ids, &length));
    if (v->windows.value) {
        LNT_TRY(lnt_windows_run(&v->windows, v->session, v->output, say_window, s, s->err));
        return say_samples(s, NULL, 0, true);
    }
    LNT_TRY(lnt_run(v->session, s->err));
    LNT_TRY(lnt_get_output(v->session, v->output, &sound, s->err));
    if (v->durations >= 0)
        LNT_TRY(add_marks(v, ids, n_ids, sound.bytes / sizeof(float), s->how.pitch, s->err));
    return say_samples(s, sound.data, sound.bytes / sizeof(float), true);
}

static lnt_status say_parts(speech *s, const lnt_part *part, size_t n)
{
    const float length = s->how.length, volume = s->how.volume, pitch = s->how.pitch;
    for (size_t k = 0; k < n; k++) {
        s->how.length = part[k].rate > 0 ? length / part[k].rate : length;
        s->how.volume = part[k].rate > 0 ? volume * part[k].volume : volume;
        s->how.pitch = part[k].rate > 0 ? pitch * part[k].pitch : pitch;
        if (part[k].n_ids)
            LNT_TRY(say_ids(s, part[k].ids, part[k].n_ids));
        LNT_TRY(send_silence(s, part[k].silence));
        if (part[k].ends_a_sentence)
            LNT_TRY(send_silence(s, s->how.sentence_silence));
    }
    return LNT_OK;
}

static bool in_range(double x, double most)
{
    return x >= 0 && x <= most;
}

static lnt_status check(const lnt_voice *v, const lnt_say_options *o, lnt_error *err)
{
    const uint32_t speakers = v->config.n_speakers;
    LNT_REQUIRE(o->speaker >= 0 && o->speaker < speakers, err, LNT_E_ARGUMENT,
                "the voice has no speaker %lld; they are 0 to %u", (long long)o->speaker, speakers - 1);
    LNT_REQUIRE(in_range(o->noise, 1000) && in_range(o->noise_w, 1000) && in_range(o->length, 1000) &&
                    o->length > 0,
                err, LNT_E_ARGUMENT, "scales are from 0 to 1000, that of lengths above 0");
    LNT_REQUIRE(in_range(o->volume, 1000) && in_range(o->sentence_silence, 60), err, LNT_E_ARGUMENT,
                "the volume is from 0 to 1000, silence from 0 to 60 seconds");
    LNT_REQUIRE(o->pitch >= 0.5f && o->pitch <= 2, err, LNT_E_ARGUMENT, "the pitch is from 0.5 to 2");
    for (size_t i = 0; i < o->n_silences; i++) {
        const char *p = o->silence[i].phoneme;
        const unsigned n = lnt_utf8_bytes(p);
        LNT_REQUIRE(*p && n && !p[n] && in_range(o->silence[i].seconds, 60), err, LNT_E_ARGUMENT,
                    "silence is from 0 to 60 seconds, behind one symbol, not '%.40s'", p);
    }
    return LNT_OK;
}

void lnt_voice_defaults(const lnt_voice *voice, lnt_say_options *options)
{
    const lnt_voice_config *c = &voice->config;
    *options = (lnt_say_options){.struct_bytes = sizeof *options,
                                 .noise = c->noise,
                                 .length = c->length,
                                 .noise_w = c->noise_w,
                                 .volume = 1,
                                 .pitch = 1};
}

lnt_status lnt_voice_take_options(const lnt_voice *voice, const lnt_say_options *given, lnt_say_options *how,
                                  lnt_error *err)
{
    if (given)
        LNT_TRY(lnt_take_struct(given, how, sizeof *how, "lnt_say_options", err));
    else
        lnt_voice_defaults(voice, how);
    how->pitch = how->pitch == 0 ? 1 : how->pitch;
    return check(voice, how, err);
}

static lnt_status plan_ids(lnt_voice *v, const char *text, lnt_error *err)
{
    lnt_voice_sentence ids = {0};
    lnt_parts *to = &v->parts;
    lnt_bump_reset(&v->passing);
    LNT_TRY(read_ids(v, text, &ids, err));
    if (!ids.n_ids)
        return LNT_OK;
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, to->part, to->room, to->n, err));
    to->part[to->n++] = (lnt_part){.ids = ids.ids, .n_ids = ids.n_ids};
    return LNT_OK;
}

lnt_status lnt_voice_plan(lnt_voice *v, const char *text, const lnt_say_options *given,
                          const lnt_parts **parts, lnt_error *err)
{
    lnt_say_options how;
    *parts = &v->parts;
    v->parts.n = v->parts.missing = 0;
    LNT_TRY(lnt_voice_take_options(v, given, &how, err));
    if (how.form == LNT_VOICE_IDS)
        return plan_ids(v, text, err);
    if (how.form == LNT_VOICE_TEXT && lnt_is_ssml(text))
        return plan_ssml(v, text, &how, err);
    LNT_TRY(read_script(v, text, how.form, err));
    return lnt_parts_plan(&v->parts, &v->script, &v->config, &how, lnt_voice_streams(v), &v->passing, err);
}

lnt_status lnt_voice_say_parts(lnt_voice *voice, const lnt_part *part, size_t n, const lnt_say_options *given,
                               lnt_voice_emit emit, void *user, lnt_error *err)
{
    speech s = {.voice = voice, .emit = emit, .user = user, .err = err};
    voice->n_marks = voice->emitted = 0;
    LNT_TRY(lnt_voice_take_options(voice, given, &s.how, err));
    return say_parts(&s, part, n);
}

lnt_status lnt_voice_say(lnt_voice *voice, const char *text, const lnt_say_options *options,
                         lnt_voice_emit emit, void *user, lnt_error *err)
{
    const lnt_parts *parts;
    voice->parts.missing = 0;
    LNT_TRY(lnt_voice_plan(voice, text, options, &parts, err));
    return lnt_voice_say_parts(voice, parts->part, parts->n, options, emit, user, err);
}

uint64_t lnt_voice_hash(const lnt_voice *voice)
{
    return voice->hash;
}

bool lnt_voice_streams(const lnt_voice *voice)
{
    return voice->windows.value != NULL;
}

lnt_status lnt_voice_marks(const lnt_voice *voice, const lnt_voice_mark **mark, size_t *n, lnt_error *err)
{
    LNT_REQUIRE(voice->durations >= 0, err, LNT_E_UNSUPPORTED, "%s",
                voice->windows.value ? "sentences are computed by pieces, which have no times: --stream off"
                                     : "the voice's model has no output durations, int64, to tell times by");
    *mark = voice->mark;
    *n = voice->n_marks;
    return LNT_OK;
}

size_t lnt_voice_missing(const lnt_voice *voice)
{
    return voice->parts.missing;
}

void lnt_voice_cancel(lnt_voice *voice)
{
    lnt_cancel(voice->session);
}
