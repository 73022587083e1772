/* linnet_voice.h — the public C API of Linnet's voices: text in, sound out.
 *
 *     // made by `linnet convert voice.onnx --config voice.onnx.json`
 *     lnt_model_create("voice.lnt", NULL, &model, &err);
 *     lnt_voice_create(model, NULL, &voice, &err);
 *     // int play(void *user, const int16_t *pcm, size_t n)
 *     lnt_voice_say(voice, "Your tea is ready.", NULL, play, NULL, &err);
 *     lnt_voice_destroy(&voice);
 *
 * A voice is a model with the interface of Piper's: `input` [1, T] and `input_lengths` [1], int64, `scales` [3], float,
 * and of several speakers `sid` [1], int64; its first output is the sound. It belongs to one thread at a time, but for
 * lnt_voice_cancel. Same voice, text, options and level: same bytes.
 *
 * Where the model's metadata name a cut (stream.value, see formats/FORMAT.md), sentences are computed and emitted piece
 * by piece, as loud as they are computed times stream.gain; else as a whole, brought to their peak.
 *
 * Every function that can fail returns an lnt_status and explains itself in *err (which may be NULL). The library
 * never prints, aborts or exits. Phonemes are asked of the program espeak-ng where the voice was trained on its; it
 * runs beside this process until the voice is destroyed. */
#ifndef LINNET_VOICE_H
#define LINNET_VOICE_H

#include "linnet.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lnt_voice lnt_voice;

#define LNT_VOICE_TEXT_MOST 1048576 /* bytes of a text */

/* All zeros but struct_bytes is the default. */
typedef struct lnt_voice_options {
    size_t struct_bytes;                /* sizeof(lnt_voice_options); 0 is refused */
    const lnt_session_options *session; /* threads, level, arena; its seed is not used */
    const char *config;                 /* Piper's JSON; NULL: what the model's metadata hold */
    const char *espeak;                 /* NULL: "espeak-ng", along PATH */
    const char *espeak_data;            /* the folder that holds espeak-ng-data; NULL: espeak-ng's own */
    bool whole;      /* compute sentences as a whole, even where the model can be computed by pieces */
    uint32_t window; /* frames of a piece, rounded up to what the model asks for; 0: 16, then more */
} lnt_voice_options;

/* The model must outlive the voice. */
LNT_API lnt_status lnt_voice_create(lnt_model *model, const lnt_voice_options *options, lnt_voice **voice,
                                    lnt_error *err);
/* Accepts NULL and pointers to NULL; sets *voice to NULL. */
LNT_API void lnt_voice_destroy(lnt_voice **voice);

typedef struct lnt_voice_info {
    size_t
        struct_bytes; /* sizeof(lnt_voice_info), set before the call: how much is filled in; 0 is refused */
    uint32_t rate;    /* Hz */
    uint32_t n_speakers;      /* at least 1 */
    uint32_t n_named;         /* of them, those with names: lnt_voice_speaker */
    const char *espeak_voice; /* NULL: the voice needs no espeak-ng */
} lnt_voice_info;

LNT_API lnt_status lnt_voice_get_info(const lnt_voice *voice, lnt_voice_info *info, lnt_error *err);
/* Speaker k of those with names. */
LNT_API lnt_status lnt_voice_speaker(const lnt_voice *voice, uint32_t k, const char **name, int64_t *id);

/* What a text is written in. */
typedef enum lnt_voice_form {
    LNT_VOICE_TEXT = 0,     /* UTF-8; phonemes between [[ and ]]; where it begins with <speak> also
                             * <break time="300ms"/> and <prosody rate="80%" pitch="+2st" volume="loud"> */
    LNT_VOICE_PHONEMES = 1, /* the voice's symbols, one sentence */
    LNT_VOICE_IDS = 2       /* numbers with blanks between them, one sentence */
} lnt_voice_form;

typedef struct lnt_voice_sentence {
    const char *phonemes; /* "" of ids */
    const int64_t *ids;
    size_t n_ids;
    size_t missing; /* symbols that the voice does not have: they are left out */
} lnt_voice_sentence;

/* The sentences of a text, which are the voice's until its next call. */
LNT_API lnt_status lnt_voice_sentences(lnt_voice *voice, const char *text, lnt_voice_form form,
                                       const lnt_voice_sentence **sentence, size_t *n, lnt_error *err);

typedef struct lnt_voice_silence {
    const char
        *phoneme; /* one symbol: a sentence is spoken in parts, and behind those that end in it is silence */
    float seconds;
} lnt_voice_silence;

typedef struct lnt_say_options {
    size_t struct_bytes; /* set by lnt_voice_defaults */
    lnt_voice_form form;
    uint64_t seed; /* of the noise; sentence k of a text has seed + k */
    int64_t speaker;
    float noise, length, noise_w; /* of the sound, of durations: > 1 is slower, of the spread of durations */
    float volume;
    bool
        as_computed; /* do not bring each sentence's loudest sample to the volume; by pieces: do not apply the gain */
    double sentence_silence;          /* seconds between sentences */
    const lnt_voice_silence *silence; /* besides the voice's own */
    size_t n_silences;
    float pitch; /* times the voice's, 0.5 to 2; 0: 1. What is spoken slower is played faster: formants move with it */
} lnt_say_options;

/* What the voice itself says, volume 1, seed 0. */
LNT_API void lnt_voice_defaults(const lnt_voice *voice, lnt_say_options *options);

/* Receives samples as they are ready; other than 0 ends lnt_voice_say with LNT_E_CANCELLED. */
typedef int (*lnt_voice_emit)(void *user, const int16_t *pcm, size_t n);

/* Speaks a text. options NULL: the defaults. */
LNT_API lnt_status lnt_voice_say(lnt_voice *voice, const char *text, const lnt_say_options *options,
                                 lnt_voice_emit emit, void *user, lnt_error *err);
/* When a symbol of the last text sounds. Words are what blanks are between. */
typedef struct lnt_voice_mark {
    char symbol[8];  /* UTF-8 */
    size_t first, n; /* samples of all that was emitted, silence between sentences too */
} lnt_voice_mark;

/* Those of the last lnt_voice_say, the voice's until its next call. LNT_E_UNSUPPORTED if the model has no output
 * "durations", int64 [1, ids], in frames of equal length, or sentences are computed by pieces. */
LNT_API lnt_status lnt_voice_marks(const lnt_voice *voice, const lnt_voice_mark **mark, size_t *n,
                                   lnt_error *err);
/* Symbols of the last text spoken that the voice does not have. */
LNT_API size_t lnt_voice_missing(const lnt_voice *voice);
/* From any thread or signal handler: the present lnt_voice_say, or else the next, ends with LNT_E_CANCELLED. */
LNT_API void lnt_voice_cancel(lnt_voice *voice);

/* ---- packs of prompts ---- */

/* Prompts ahead of time, in a file that `linnet say --pack` writes for one voice (docs/say.md has the format). It is
 * read where it lies and never changed: threads may share it.
 *
 *     lnt_prompts_open("prompts.lpk", &pack, &err);
 *     lnt_prompts_find(pack, "door_open", &k, &err);
 *     lnt_prompts_sound(pack, k, play, NULL, &err);                           // needs no voice
 *     lnt_prompts_say(pack, k, values, n, voice, NULL, play, NULL, &err);     // "It is {temp:number} degrees." */
typedef struct lnt_prompts lnt_prompts;

/* Maps the file, until the pack is destroyed. Everything but the sounds is checked, and its hash. */
LNT_API lnt_status lnt_prompts_open(const char *path, lnt_prompts **pack, lnt_error *err);
/* The same of a file in memory: data[0..bytes) stays the caller's and must outlive the pack. */
LNT_API lnt_status lnt_prompts_create(const void *data, size_t bytes, lnt_prompts **pack, lnt_error *err);
/* Accepts NULL and pointers to NULL; sets *pack to NULL. */
LNT_API void lnt_prompts_destroy(lnt_prompts **pack);

LNT_API uint32_t lnt_prompts_count(const lnt_prompts *pack);
/* Hz, of its sounds. */
LNT_API uint32_t lnt_prompts_rate(const lnt_prompts *pack);

typedef struct lnt_prompt_info {
    size_t
        struct_bytes; /* sizeof(lnt_prompt_info), set before the call: how much is filled in; 0 is refused */
    const char *name, *text; /* the pack's */
    size_t n_slots;          /* places in the text that values go to */
    bool has_sound;
    size_t samples; /* of its sound */
} lnt_prompt_info;

/* Prompt k of lnt_prompts_count. */
LNT_API lnt_status lnt_prompts_info(const lnt_prompts *pack, uint32_t k, lnt_prompt_info *info,
                                    lnt_error *err);
/* LNT_E_NOT_FOUND: there is none of that name. Allocates nothing. */
LNT_API lnt_status lnt_prompts_find(const lnt_prompts *pack, const char *name, uint32_t *k, lnt_error *err);

/* Emits the sound of prompt k, once its hash is checked. LNT_E_NOT_FOUND: it has none. Allocates nothing. */
LNT_API lnt_status lnt_prompts_sound(const lnt_prompts *pack, uint32_t k, lnt_voice_emit emit, void *user,
                                     lnt_error *err);

typedef struct lnt_slot_value {
    const char *slot, *value;
} lnt_slot_value;

/* Speaks prompt k: by its sound where it has one of these options, by its ids where the text has no slots, and else
 * by its text with the values. Every slot has one value. LNT_E_VALUE if the pack was made with another voice. The
 * form that the options name is not used. */
LNT_API lnt_status lnt_prompts_say(const lnt_prompts *pack, uint32_t k, const lnt_slot_value *value, size_t n,
                                   lnt_voice *voice, const lnt_say_options *options, lnt_voice_emit emit,
                                   void *user, lnt_error *err);

/* ---- English words as phonemes ---- */

/* How the words of English sound, in a file that `make lexicon` writes. It belongs to one thread at a time. */
typedef struct lnt_lexicon lnt_lexicon;

/* data[0..bytes) is checked, stays the caller's and must outlive the lexicon: a file in memory, or a model's attachment
 * "lexicon" (lnt_model_attachment). */
LNT_API lnt_status lnt_lexicon_create(const void *data, size_t bytes, lnt_lexicon **lexicon, lnt_error *err);
/* Accepts NULL and pointers to NULL; sets *lexicon to NULL. */
LNT_API void lnt_lexicon_destroy(lnt_lexicon **lexicon);
/* English text as phonemes of ARPAbet, a digit for its stress behind each vowel, "|" between words, marks where the
 * text pauses: "Hello, world." is "HH AH0 L OW1 , W ER1 L D .". Between [[ and ]] the text has such symbols itself. The
 * result is the lexicon's until its next call. */
LNT_API lnt_status lnt_lexicon_phonemes(lnt_lexicon *lexicon, const char *text, const char **phonemes,
                                        lnt_error *err);

#ifdef __cplusplus
}
#endif
#endif
