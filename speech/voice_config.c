/* voice_config.c — what Piper's JSON says of a voice. */
#include "speech/voice_config.h"

#include "base/utf8.h"
#include "speech/read_json.h"

#include <stdlib.h>
#include <string.h>

static const float NOISE = 0.667f, LENGTH = 1, NOISE_W = 0.8f; /* where the voice does not say */
static const double MOST_RATE = 384000, MOST_SPEAKERS = 1 << 20, MOST_ID = INT32_MAX;

typedef struct parser {
    lnt_bump *memory;
    lnt_voice_config *config;
    lnt_error *err;
} parser;

static size_t count(const lnt_json_value *of)
{
    size_t n = 0;
    for (const lnt_json_value *v = of ? of->first : NULL; v; v = v->next)
        n++;
    return n;
}

static bool is_whole(const lnt_json_value *v, double least, double most)
{
    return v && v->kind == LNT_JSON_NUMBER && v->number >= least && v->number <= most &&
           v->number == (double)(int64_t)v->number;
}

/* The code point that is all of text; 0 if it is none or several. */
static uint32_t single(const char *text)
{
    const unsigned n = lnt_utf8_bytes(text);
    return *text && n && !text[n] ? lnt_utf8_code(text, n) : 0;
}

static lnt_status take_scale(parser *p, const lnt_json_value *of, const char *name, float otherwise,
                             float *to)
{
    const lnt_json_value *v = lnt_json_member(of, name);
    *to = otherwise;
    if (!v)
        return LNT_OK;
    LNT_REQUIRE(v->kind == LNT_JSON_NUMBER && v->number >= 0 && v->number <= 1000, p->err, LNT_E_VALUE,
                "inference.%s is a number from 0 to 1000", name);
    *to = (float)v->number;
    return LNT_OK;
}

/* "inference": scales, and silence behind symbols. */
static lnt_status take_inference(parser *p, const lnt_json_value *of)
{
    const lnt_json_value *silences = lnt_json_member(of, "phoneme_silence");
    lnt_voice_config *c = p->config;
    LNT_TRY(take_scale(p, of, "noise_scale", NOISE, &c->noise));
    LNT_TRY(take_scale(p, of, "length_scale", LENGTH, &c->length));
    LNT_TRY(take_scale(p, of, "noise_w", NOISE_W, &c->noise_w));
    lnt_symbol_silence *to = lnt_bump_alloc(p->memory, (count(silences) + 1) * sizeof *to, p->err);
    if (!to)
        return LNT_E_MEMORY;
    c->silence = to;
    for (const lnt_json_value *v = silences ? silences->first : NULL; v; v = v->next) {
        const uint32_t code = v->key ? single(v->key) : 0;
        LNT_REQUIRE(code && v->kind == LNT_JSON_NUMBER && v->number >= 0 && v->number <= 60, p->err,
                    LNT_E_VALUE,
                    "inference.phoneme_silence has single symbols, and 0 to 60 seconds behind each");
        to[c->n_silences++] = (lnt_symbol_silence){code, v->number};
    }
    return LNT_OK;
}

static int by_code(const void *a, const void *b)
{
    const uint32_t x = ((const lnt_symbol *)a)->code, y = ((const lnt_symbol *)b)->code;
    return (x > y) - (x < y);
}

const lnt_symbol *lnt_symbol_of(const lnt_voice_config *config, uint32_t code)
{
    const lnt_symbol key = {.code = code};
    return bsearch(&key, config->symbol, config->n_symbols, sizeof key, by_code);
}

static lnt_status take_special(parser *p, uint32_t code, lnt_symbol *to)
{
    const lnt_symbol *s = lnt_symbol_of(p->config, code);
    LNT_REQUIRE(s, p->err, LNT_E_VALUE, "phoneme_id_map has no '%c'", (int)code);
    *to = *s;
    return LNT_OK;
}

/* "phoneme_id_map": a symbol's ids. Names of several characters stand for groups of vowels, which no text here has. */
static lnt_status take_symbols(parser *p, const lnt_json_value *map)
{
    lnt_voice_config *c = p->config;
    size_t n_ids = 0, ids = 0;
    LNT_REQUIRE(map && map->kind == LNT_JSON_OBJECT, p->err, LNT_E_VALUE,
                "there is no phoneme_id_map: no voice of Piper's");
    for (const lnt_json_value *v = map->first; v; v = v->next)
        n_ids += count(v);
    lnt_symbol *symbol = lnt_bump_alloc(p->memory, (count(map) + 1) * sizeof *symbol, p->err);
    int64_t *id = lnt_bump_alloc(p->memory, (n_ids + 1) * sizeof *id, p->err);
    if (!symbol || !id)
        return LNT_E_MEMORY;
    for (const lnt_json_value *v = map->first; v; v = v->next) {
        const uint32_t code = single(v->key), first = (uint32_t)ids;
        LNT_REQUIRE(v->kind == LNT_JSON_ARRAY, p->err, LNT_E_VALUE, "phoneme_id_map: '%s' has no list of ids",
                    v->key);
        for (const lnt_json_value *i = v->first; i; i = i->next) {
            LNT_REQUIRE(is_whole(i, 0, MOST_ID), p->err, LNT_E_VALUE,
                        "phoneme_id_map: '%s' has an id that is none", v->key);
            id[ids++] = (int64_t)i->number;
        }
        if (code)
            symbol[c->n_symbols++] = (lnt_symbol){code, first, (uint32_t)ids - first};
    }
    qsort(symbol, c->n_symbols, sizeof *symbol, by_code);
    for (size_t i = 1; i < c->n_symbols; i++)
        LNT_REQUIRE(symbol[i].code != symbol[i - 1].code, p->err, LNT_E_VALUE,
                    "phoneme_id_map has the symbol U+%04X twice", (unsigned)symbol[i].code);
    c->symbol = symbol;
    c->id = id;
    LNT_TRY(take_special(p, '^', &c->begin));
    LNT_TRY(take_special(p, '_', &c->pad));
    return take_special(p, '$', &c->end);
}

static lnt_status take_speakers(parser *p, const lnt_json_value *top)
{
    const lnt_json_value *n = lnt_json_member(top, "num_speakers"),
                         *map = lnt_json_member(top, "speaker_id_map");
    lnt_voice_config *c = p->config;
    LNT_REQUIRE(!n || is_whole(n, 0, MOST_SPEAKERS), p->err, LNT_E_VALUE, "num_speakers is a whole number");
    c->n_speakers = n && n->number > 1 ? (uint32_t)n->number : 1;
    lnt_speaker *speaker = lnt_bump_alloc(p->memory, (count(map) + 1) * sizeof *speaker, p->err);
    if (!speaker)
        return LNT_E_MEMORY;
    c->speaker = speaker;
    for (const lnt_json_value *v = map ? map->first : NULL; v; v = v->next) {
        LNT_REQUIRE(v->key && is_whole(v, 0, c->n_speakers - 1), p->err, LNT_E_VALUE,
                    "speaker_id_map has names, and numbers from 0 to %u", c->n_speakers - 1);
        speaker[c->n_named++] = (lnt_speaker){v->key, (int64_t)v->number};
    }
    return LNT_OK;
}

static lnt_status take_front_end(parser *p, const lnt_json_value *top)
{
    const lnt_json_value *type = lnt_json_member(top, "phoneme_type"),
                         *clusters = lnt_json_member(top, "vowel_clusters"),
                         *voice = lnt_json_member(lnt_json_member(top, "espeak"), "voice");
    const char *name = type && type->kind == LNT_JSON_TEXT ? type->text : "espeak";
    LNT_REQUIRE(strcmp(name, "espeak") == 0 || strcmp(name, "text") == 0 || strcmp(name, "arpabet") == 0,
                p->err, LNT_E_UNSUPPORTED,
                "the voice's phoneme_type is %s; espeak, arpabet and text are known here, and phonemes or "
                "ids as input",
                name);
    LNT_REQUIRE(!count(clusters), p->err, LNT_E_UNSUPPORTED, "vowel_clusters of a voice are not known here");
    p->config->arpabet = strcmp(name, "arpabet") == 0;
    if (strcmp(name, "espeak") != 0)
        return LNT_OK;
    LNT_REQUIRE(voice && voice->kind == LNT_JSON_TEXT && *voice->text, p->err, LNT_E_VALUE,
                "espeak.voice, the name of espeak-ng's voice, is missing");
    p->config->espeak = voice->text;
    return LNT_OK;
}

const char *lnt_voice_metadata(const lnt_model *model, const char *wanted)
{
    const char *key, *text;
    for (uint32_t i = 0; lnt_model_metadata(model, i, &key, &text) == LNT_OK; i++)
        if (strcmp(key, wanted) == 0)
            return text;
    return NULL;
}

lnt_status lnt_voice_config_read(const char *text, size_t bytes, lnt_bump *memory, lnt_voice_config *config,
                                 lnt_error *err)
{
    parser p = {.memory = memory, .config = config, .err = err};
    const lnt_json_value *top;
    *config = (lnt_voice_config){0};
    LNT_TRY(lnt_json_read(text, bytes, memory, &top, err));
    const lnt_json_value *rate = lnt_json_member(lnt_json_member(top, "audio"), "sample_rate");
    LNT_TRY(take_symbols(&p, lnt_json_member(top, "phoneme_id_map")));
    LNT_REQUIRE(is_whole(rate, 1, MOST_RATE), err, LNT_E_VALUE, "audio.sample_rate is a whole number of Hz");
    config->rate = (uint32_t)rate->number;
    LNT_TRY(take_inference(&p, lnt_json_member(top, "inference")));
    LNT_TRY(take_speakers(&p, top));
    return take_front_end(&p, top);
}
