/* verb_say.c — `linnet say`: text in, sound out, with the options of both of Piper's programs. */
#include "base/clock.h"
#include "cli/data/model.h"
#include "cli/say/pack_prompts.h"
#include "cli/say/sink.h"
#include "cli/say/text_queue.h"
#include "cli/say/texts.h"
#include "cli/say/voices.h"
#include "cli/serve/server.h"
#include "cli/shell/json.h"
#include "cli/verbs.h"
#include "speech/markup/ssml.h"
#include "speech/lexicon.h"
#include "speech/normalize.h"
#include "speech/prompts/sound_cache.h"
#include "speech/voice_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BY_TIME, BY_TEXT };
enum { STREAM_AUTO, STREAM_OFF };
enum { PRINT_SOUND, PRINT_PHONEMES, PRINT_IDS, PRINT_WORDS, PRINT_TIMES };

static struct {
    const char *model, *config, *file, *folder, *speaker, *level, *espeak, *espeak_data, *lexicon;
    const char *pack, *output, *prompts, *cache;
    lnt_texts phonemes, ids, files, silences, data_dirs, addresses;
    double noise, length, noise_w, speed, pitch, volume, silence;
    int64_t seed, threads, window, cache_bytes;
    int naming, print, stream, sound, queue;
    bool raw, as_computed, json_input, json, debug, quiet, version, gpu;
    const char *tashkeel;
} given = {.noise = NAN,
           .length = NAN,
           .noise_w = NAN,
           .speed = NAN,
           .pitch = 1,
           .volume = 1,
           .silence = 0,
           .cache_bytes = 64 << 20};

static const lnt_option options[] = {
    {"-m, --model", "VOICE", LNT_OPTION_TEXT, &given.model,
     "the voice: an .lnt made with convert --config, or an .onnx beside its\n.onnx.json; or its name alone, "
     "of a file in "
     "a --data-dir or of those\nthat come with the program (" LNT_DEFAULT_VOICE ", wren)"},
    {"-c, --config", "FILE", LNT_OPTION_TEXT, &given.config, "Piper's JSON, where it is not VOICE.json"},
    {"-f, --output_file", "FILE|-", LNT_OPTION_TEXT, &given.file,
     "write one sound of all texts: .wav, .flac, .ogg; -: a .wav to standard\noutput"},
    {"-d, --output_dir", "DIR", LNT_OPTION_TEXT, &given.folder,
     "write a .wav for each text, and print its name"},
    {"--output-dir-naming", "timestamp|text", LNT_OPTION_CHOICE, &given.naming,
     "what those are called by (timestamp)"},
    {"--output_raw", NULL, LNT_OPTION_FLAG, &given.raw,
     "samples to standard output as they come: 16 bits, little-endian, mono"},
    {"-i, --input_file", "FILE", LNT_OPTION_TEXTS, &given.files, "read texts from there, one a line"},
    {"--json-input", NULL, LNT_OPTION_FLAG, &given.json_input,
     "lines are JSON: {\"text\": …, \"speaker\": …, \"speaker_id\": …,\n\"output_file\": …}, all but the "
     "first optional"},
    {"--queue", "add|flush|interrupt", LNT_OPTION_CHOICE, &given.queue,
     "what a line that comes while others are played, or a request of --serve, does to\nthose: waits for "
     "them; "
     "takes the place of those that wait; stops the present one,\ntoo (add). A line or request in JSON may "
     "say "
     "otherwise: \"queue\""},
    {"--phonemes", "TEXT", LNT_OPTION_TEXTS, &given.phonemes,
     "speak phonemes; in a text they stand in [[ ]]"},
    {"--ids", "TEXT", LNT_OPTION_TEXTS, &given.ids,
     "speak ids of phonemes, numbers with blanks between them"},
    {"-s, --speaker", "N|NAME", LNT_OPTION_TEXT, &given.speaker, "of a voice with several (0)"},
    {"--speed", "X", LNT_OPTION_NUMBER, &given.speed, "2 is twice as fast (1)"},
    {"--length_scale", "X", LNT_OPTION_NUMBER, &given.length,
     "of each phoneme, more is slower (the voice's)"},
    {"--noise_scale", "X", LNT_OPTION_NUMBER, &given.noise, "of the sound (the voice's)"},
    {"--noise_w, --noise_w_scale", "X", LNT_OPTION_NUMBER, &given.noise_w, "of lengths (the voice's)"},
    {"--pitch", "X", LNT_OPTION_NUMBER, &given.pitch,
     "2 is an octave higher, 0.5 lower, at the same speed; the voice seems smaller or\nlarger with it (1)"},
    {"--volume", "X", LNT_OPTION_NUMBER, &given.volume, "of each sentence's loudest sample, at most 1 (1)"},
    {"--no-normalize", NULL, LNT_OPTION_FLAG, &given.as_computed, "sentences as loud as they are computed"},
    {"--sentence_silence", "S", LNT_OPTION_NUMBER, &given.silence, "seconds between sentences of a text (0)"},
    {"--phoneme_silence", "P S", LNT_OPTION_PAIRS, &given.silences, "seconds behind a phoneme, as \", .2\""},
    {"--seed", "S", LNT_OPTION_COUNT, &given.seed, "of the noise: same seed, same sound (0)"},
    {"--stream", "auto|off", LNT_OPTION_CHOICE, &given.stream,
     "compute a sentence by pieces where the voice can be, at the gain of the voice; off: as\na whole, "
     "brought to its "
     "peak (auto; off where the program is called piper)"},
    {"--window", "N", LNT_OPTION_COUNT, &given.window, "frames of a piece (16, then more)"},
    {"--print", "sound|phonemes|ids|words|times", LNT_OPTION_CHOICE, &given.print,
     "print those of each sentence, and be silent; words: English text with numbers\nand abbreviations in "
     "full, for which no voice is needed; times: from when to\nwhen each symbol sounds, in seconds, of "
     "voices that tell it"},
    {"--lexicon", "FILE", LNT_OPTION_TEXT, &given.lexicon,
     "how English words sound (`make lexicon`): --print phonemes prints ARPAbet then,\nfor which no voice is "
     "needed (what the voice has attached)"},
    {"--json", NULL, LNT_OPTION_FLAG, &given.json, "print what was done as JSON"},
    {"--pack", "FILE", LNT_OPTION_TEXT, &given.pack,
     "speak prompts ahead of time: lines name|text, in which {who}, {n:number}, {t:time} and\n{n:unit kWh} "
     "are "
     "slots for values"},
    {"-o, --output", "FILE", LNT_OPTION_TEXT, &given.output, "the pack to write, an .lpk"},
    {"--sound", "none|pcm|adpcm", LNT_OPTION_CHOICE, &given.sound,
     "what sound the pack has of prompts without slots: samples, or a quarter of their\nbytes (none)"},
    {"--prompts", "FILE", LNT_OPTION_TEXT, &given.prompts,
     "a pack: words are names of its prompts, each with slot=value behind it; lines of\n--json-input may be "
     "{\"prompt\": …, \"values\": {…}}"},
    {"--cache", "DIR", LNT_OPTION_TEXT, &given.cache,
     "keep sounds there; what was said before with the same voice and options is read\ninstead of computed"},
    {"--cache-bytes", "N", LNT_OPTION_COUNT, &given.cache_bytes,
     "of all of them together; the one that was not asked for longest goes first\n(67108864)"},
    {"--serve", "ADDRESS", LNT_OPTION_TEXTS, &given.addresses,
     "stay, and speak what clients ask for: [http:][HOST:]PORT as Piper's web server,\nwyoming:[HOST:]PORT "
     "for Home "
     "Assistant, or unix:PATH in place of HOST:PORT"},
    {"--threads", "N", LNT_OPTION_COUNT, &given.threads, "threads (as many as the machine gives)"},
    {"--level", "L", LNT_OPTION_TEXT, &given.level, "kernels of this level (best)"},
    {"--data-dir", "DIR", LNT_OPTION_TEXTS, &given.data_dirs, "where voices are looked for by name (.)"},
    {"--espeak", "PROGRAM", LNT_OPTION_TEXT, &given.espeak,
     "instead of espeak-ng: another of its kind, or examples/espeak's espeak_clauses"},
    {"--espeak_data", "DIR", LNT_OPTION_TEXT, &given.espeak_data, "folder that holds espeak-ng-data"},
    {"--debug", NULL, LNT_OPTION_FLAG, &given.debug, "tell of phonemes and ids on standard error"},
    {"-q, --quiet", NULL, LNT_OPTION_FLAG, &given.quiet, "no warnings"},
    {"--version", NULL, LNT_OPTION_FLAG, &given.version, "print the version"},
    {"--cuda, --use_cuda", NULL, LNT_OPTION_FLAG, &given.gpu,
     "of Piper's; refused: sound is computed on the CPU"},
    {"--tashkeel_model", "FILE", LNT_OPTION_TEXT, &given.tashkeel,
     "of Piper's; refused: Arabic text must have its vowel marks"},
};

/* ---- the voice ---- */

/* The one that is named, or the program itself, or the default one. NULL: there is none. */
static const char *find_model(void)
{
    static const char self[] = "/proc/self/exe";
    const char *found =
        !given.model && lnt_blob_is_bundle(self) ? self : lnt_find_voice(given.model, &given.data_dirs);
    return found ? found : given.model;
}

/* What was given with -c, or stands beside an .onnx; NULL: the model holds it. */
static lnt_status read_config(const char *model, const char **text, lnt_error *err)
{
    const char *path = given.config                    ? given.config
                       : lnt_ends_with(model, ".onnx") ? lnt_cli_text("%s.json", model)
                                                       : NULL;
    char *read = NULL;
    *text = NULL;
    if (!path)
        return LNT_OK;
    const lnt_status status = lnt_read_text(path, &read, err);
    *text = read;
    if (status != LNT_OK && !given.config)
        lnt_error_prefix(err, "a voice of Piper's has its configuration beside it, or -c names it: ");
    return status;
}

/* *config: Piper's JSON, where the model does not hold it. */
static lnt_status open_voice(const char *model, lnt_opened *o, const char **config, lnt_voice **voice,
                             lnt_error *err)
{
    const lnt_session_options session = {.struct_bytes = sizeof session,
                                         .intra_op_num_threads = (uint32_t)given.threads,
                                         .level = given.level};
    lnt_voice_options how = {.struct_bytes = sizeof how,
                             .session = &session,
                             .espeak = given.espeak,
                             .espeak_data = given.espeak_data,
                             .whole = given.stream == STREAM_OFF,
                             .window = (uint32_t)given.window};
    LNT_TRY(read_config(model, config, err));
    how.config = *config;
    LNT_TRY(lnt_opened_open(model, NULL, 0, o, err));
    const lnt_status status = lnt_voice_create(o->model, &how, voice, err);
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", model);
    return status;
}

/* The file that was given, or what the voice's model has attached; *lexicon NULL: neither is there, or the voice reads
 * by espeak-ng. */
static lnt_status open_lexicon(const lnt_voice *voice, lnt_model *model, lnt_blob *blob,
                               lnt_lexicon **lexicon, lnt_error *err)
{
    lnt_voice_info info = {.struct_bytes = sizeof info};
    const void *data = NULL;
    size_t bytes = 0;
    *lexicon = NULL;
    if (given.lexicon) {
        LNT_TRY(lnt_blob_open(given.lexicon, false, &lnt_malloc_allocator, blob, err));
        data = blob->bytes;
        bytes = blob->size;
    } else if (lnt_voice_get_info(voice, &info, err) != LNT_OK || info.espeak_voice ||
               lnt_model_attachment(model, LNT_LEXICON_ATTACHMENT, &data, &bytes) != LNT_OK) {
        return LNT_OK;
    }
    const lnt_status status = lnt_lexicon_create(data, bytes, lexicon, err);
    if (status != LNT_OK && given.lexicon)
        lnt_error_prefix(err, "%s: ", given.lexicon);
    return status;
}

static lnt_status take_silences(lnt_say_options *how, lnt_error *err)
{
    lnt_voice_silence *to = lnt_cli_alloc((given.silences.n / 2) * sizeof *to);
    how->silence = to;
    for (size_t i = 0; i < given.silences.n; i += 2) {
        char *end;
        const char *seconds = given.silences.item[i + 1];
        to[how->n_silences++] = (lnt_voice_silence){given.silences.item[i], strtof(seconds, &end)};
        LNT_REQUIRE(*seconds && !*end, err, LNT_E_ARGUMENT, "--phoneme_silence PHONEME SECONDS, not '%s %s'",
                    given.silences.item[i], seconds);
    }
    return LNT_OK;
}

static lnt_status take_options(const lnt_voice *voice, lnt_say_options *how, lnt_error *err)
{
    lnt_voice_defaults(voice, how);
    how->seed = (uint64_t)given.seed;
    how->as_computed = given.as_computed;
    how->volume = (float)given.volume;
    how->pitch = (float)given.pitch;
    how->sentence_silence = given.silence;
    if (!isnan(given.noise))
        how->noise = (float)given.noise;
    if (!isnan(given.noise_w))
        how->noise_w = (float)given.noise_w;
    if (!isnan(given.length))
        how->length = (float)given.length;
    if (!isnan(given.speed))
        how->length /= (float)given.speed;
    LNT_TRY(take_silences(how, err));
    return given.speaker ? lnt_take_speaker(voice, given.speaker, &how->speaker, err) : LNT_OK;
}

/* ---- speaking ---- */

/* One call of the program. */
typedef struct saying {
    lnt_voice *voice;
    lnt_prompts *prompts;   /* NULL: none are given */
    lnt_sound_cache *cache; /* NULL: none */
    bool cached;            /* the present text's sound was in it */
    lnt_lexicon *lexicon;   /* NULL: phonemes are the voice's */
    lnt_say_options how;
    lnt_sink sink, own;    /* of all texts; of one that has a file of its own */
    lnt_sink *to;          /* of the present text */
    lnt_text_queue *queue; /* NULL: texts are read one after the other */
    double first;          /* when its first sound was ready; 0: not yet */
    lnt_json json;
    lnt_error *err;
} saying;

/* An lnt_voice_emit. */
static int take(void *user, const int16_t *pcm, size_t n)
{
    saying *s = user;
    if (s->first == 0)
        s->first = lnt_now();
    return lnt_sink_take(s->to, pcm, n);
}

static void print_ids(FILE *out, const lnt_voice_sentence *sentence)
{
    for (size_t i = 0; i < sentence->n_ids; i++)
        fprintf(out, "%s%lld", i ? " " : "", (long long)sentence->ids[i]);
    putc('\n', out);
}

static void json_sentences(lnt_json *j, const lnt_voice_sentence *sentence, size_t n)
{
    lnt_json_begin(j, "sentences", '[');
    for (size_t k = 0; k < n; k++) {
        lnt_json_begin(j, NULL, '{');
        lnt_json_text(j, "phonemes", sentence[k].phonemes);
        lnt_json_ints(j, "ids", sentence[k].ids, (unsigned)sentence[k].n_ids);
        lnt_json_int(j, "missing", (int64_t)sentence[k].missing);
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
}

/* English text in full. */
static lnt_status show_words(saying *s, const lnt_spoken *spoken)
{
    lnt_bump memory;
    const char *words = NULL;
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    const lnt_status status = lnt_normalize(spoken->text, &memory, &words, s->err);
    if (status == LNT_OK && given.json)
        lnt_json_text(&s->json, "words", words);
    else if (status == LNT_OK)
        printf("%s\n", words);
    lnt_bump_free(&memory);
    return status;
}

/* English text as phonemes of ARPAbet. */
static lnt_status show_phonemes(saying *s, const lnt_spoken *spoken)
{
    const char *phonemes;
    LNT_REQUIRE(spoken->form == LNT_VOICE_TEXT, s->err, LNT_E_ARGUMENT, "--print phonemes of a text");
    LNT_TRY(lnt_lexicon_phonemes(s->lexicon, spoken->text, &phonemes, s->err));
    if (given.json)
        lnt_json_text(&s->json, "phonemes", phonemes);
    else
        printf("%s\n", phonemes);
    return LNT_OK;
}

/* What a text becomes on the way to sound, where somebody asks for it. */
static lnt_status show(saying *s, const lnt_spoken *spoken)
{
    const lnt_voice_sentence *sentence;
    size_t n;
    FILE *out = given.print ? stdout : stderr;
    if (given.print == PRINT_WORDS)
        return show_words(s, spoken);
    if (s->lexicon && !(s->voice && lnt_is_ssml(spoken->text)))
        return show_phonemes(s, spoken);
    if ((!given.print && !given.json && !given.debug) || spoken->prompt)
        return LNT_OK;
    LNT_TRY(lnt_voice_sentences(s->voice, spoken->text, spoken->form, &sentence, &n, s->err));
    if (given.json)
        json_sentences(&s->json, sentence, n);
    for (size_t k = 0; k < n; k++) {
        if (given.debug || (given.print == PRINT_PHONEMES && !given.json))
            fprintf(out, "%s\n", sentence[k].phonemes);
        if (given.debug || (given.print == PRINT_IDS && !given.json))
            print_ids(out, &sentence[k]);
    }
    return LNT_OK;
}

static void warn_of_missing(const saying *s)
{
    const size_t n = lnt_voice_missing(s->voice);
    if (n && !given.quiet)
        fprintf(stderr, "linnet say: warning: %zu symbol%s of the text %s not the voice's, and left out\n", n,
                n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

static lnt_status say_prompt(saying *s, const lnt_spoken *spoken, const lnt_say_options *how)
{
    uint32_t k;
    LNT_TRY(lnt_prompts_find(s->prompts, spoken->text, &k, s->err));
    const lnt_status status =
        lnt_prompts_say(s->prompts, k, spoken->value, spoken->n_values, s->voice, how, take, s, s->err);
    if (status != LNT_OK)
        lnt_error_prefix(s->err, "%s: ", spoken->text);
    return status;
}

/* The status of speaking, where a text that was interrupted is none of failure. */
static lnt_status unless_interrupted(saying *s, lnt_status status)
{
    if (!s->sink.interrupted)
        return status;
    s->sink.interrupted = false;
    lnt_error_clear(s->err);
    return LNT_OK;
}

/* One that is no prompt: by the cache, if there is one. */
static lnt_status say_words(saying *s, const lnt_spoken *spoken, const lnt_say_options *how)
{
    lnt_error unkept;
    if (!s->cache)
        return lnt_voice_say(s->voice, spoken->text, how, take, s, s->err);
    LNT_TRY(lnt_sound_cache_say(s->cache, s->voice, spoken->text, how, take, s, &s->cached, &unkept, s->err));
    if (unkept.code && !given.quiet)
        fprintf(stderr, "linnet say: warning: the sound was not kept: %s\n", unkept.message);
    return LNT_OK;
}

/* Speaks one text; *written as in sink.h. */
static lnt_status speak(saying *s, const lnt_spoken *spoken, lnt_sink *to, const char **written)
{
    lnt_say_options how = s->how;
    how.form = spoken->form;
    if (spoken->speaker_id >= 0)
        how.speaker = spoken->speaker_id;
    else if (spoken->speaker)
        LNT_TRY(lnt_find_speaker(s->voice, spoken->speaker, &how.speaker, s->err));
    if (spoken->prompt) {
        LNT_TRY(unless_interrupted(s, say_prompt(s, spoken, &how)));
    } else {
        LNT_TRY(unless_interrupted(s, say_words(s, spoken, &how)));
        warn_of_missing(s);
    }
    return lnt_sink_end_text(to, spoken->text, spoken->file, written);
}

static int drop(void *user, const int16_t *pcm, size_t n)
{
    (void)user, (void)pcm, (void)n;
    return 0;
}

/* When each symbol sounds: the text is spoken, and not heard. */
static lnt_status show_times(saying *s, const lnt_spoken *spoken)
{
    const lnt_voice_mark *mark;
    lnt_say_options how = s->how;
    size_t n;
    how.form = spoken->form;
    LNT_TRY(lnt_voice_say(s->voice, spoken->text, &how, drop, NULL, s->err));
    LNT_TRY(lnt_voice_marks(s->voice, &mark, &n, s->err));
    if (given.json)
        lnt_json_begin(&s->json, "times", '[');
    for (size_t i = 0; i < n; i++) {
        const double from = (double)mark[i].first / s->sink.rate, length = (double)mark[i].n / s->sink.rate;
        if (!given.json) {
            printf("%8.3f %8.3f  %s\n", from, from + length, *mark[i].symbol == ' ' ? "" : mark[i].symbol);
            continue;
        }
        lnt_json_begin(&s->json, NULL, '{');
        lnt_json_text(&s->json, "symbol", mark[i].symbol);
        lnt_json_number(&s->json, "from", from);
        lnt_json_number(&s->json, "to", from + length);
        lnt_json_end(&s->json, '}');
    }
    if (given.json)
        lnt_json_end(&s->json, ']');
    return LNT_OK;
}

static lnt_status say_text(saying *s, const lnt_spoken *spoken)
{
    lnt_sink *to = spoken->file ? &s->own : &s->sink;
    const char *written = NULL;
    const size_t before = to->given;
    const double start = lnt_now();
    s->to = to;
    s->first = 0;
    s->cached = false;
    if (given.json) {
        lnt_json_begin(&s->json, NULL, '{');
        lnt_json_text(&s->json, spoken->prompt ? "prompt" : "text", spoken->text);
    }
    LNT_TRY(given.print == PRINT_TIMES ? show_times(s, spoken) : show(s, spoken));
    if (!given.print)
        LNT_TRY(speak(s, spoken, to, &written));
    const double first_us = s->first > 0 ? (s->first - start) * 1e6 : NAN;
    if (given.debug && s->first > 0)
        fprintf(stderr, "first sound after %.1f ms\n", first_us / 1e3);
    if (!given.json) {
        if (written)
            printf("%s\n", written);
        return LNT_OK;
    }
    lnt_json_text(&s->json, "file", written);
    lnt_json_number(&s->json, "first_us", first_us);
    lnt_json_int(&s->json, "samples", (int64_t)(to->given - before));
    lnt_json_number(&s->json, "us", (lnt_now() - start) * 1e6);
    if (s->cache)
        lnt_json_bool(&s->json, "cached", s->cached);
    lnt_json_end(&s->json, '}');
    return LNT_OK;
}

/* *written: the file of all texts, if there is one. */
static lnt_status say_texts(saying *s, lnt_text_source *from, const char **written)
{
    *written = NULL;
    for (;;) {
        lnt_spoken spoken;
        bool found;
        LNT_TRY(s->queue ? lnt_text_queue_next(s->queue, &spoken, &s->sink.generation, &found, s->err)
                         : lnt_text_next(from, &spoken, &found, s->err));
        if (!found)
            break;
        LNT_TRY(say_text(s, &spoken));
    }
    return given.print ? LNT_OK : lnt_sink_end(&s->sink, written);
}

/* Lines are read while others are played. */
static lnt_status start_playing(saying *s, lnt_text_source *from)
{
    const bool lines = from->json || !(from->words->n || from->phonemes->n || from->ids->n);
    LNT_TRY(lnt_player_create(s->sink.rate, &s->sink.player, s->err));
    return lines ? lnt_text_queue_start(from, s->sink.player, &s->queue, s->err) : LNT_OK;
}

static lnt_status say_all(saying *s, lnt_text_source *from)
{
    lnt_voice_info info = {.struct_bytes = sizeof info};
    const char *written;
    if (s->voice) {
        LNT_TRY(take_options(s->voice, &s->how, s->err));
        LNT_TRY(lnt_voice_get_info(s->voice, &info, s->err));
    }
    s->sink.rate = s->own.rate = info.rate;
    if (s->sink.kind == LNT_SINK_PLAY && !given.print)
        LNT_TRY(start_playing(s, from));
    if (!given.json) {
        LNT_TRY(say_texts(s, from, &written));
        if (written)
            printf("%s\n", written);
        return LNT_OK;
    }
    lnt_json_begin(&s->json, NULL, '{');
    lnt_json_int(&s->json, "rate", info.rate);
    lnt_json_int(&s->json, "speakers", info.n_speakers);
    lnt_json_begin(&s->json, "texts", '[');
    const lnt_status status = say_texts(s, from, &written);
    lnt_json_end(&s->json, ']');
    lnt_json_text(&s->json, "file", written);
    lnt_json_end(&s->json, '}');
    return status;
}

/* ---- staying ---- */

/* The file's name without folders and ending. */
static const char *name_of(const char *model)
{
    const char *slash = strrchr(model, '/');
    char *name = lnt_cli_text("%s", slash ? slash + 1 : model);
    char *end = strrchr(name, '.');
    if (end && end > name)
        *end = '\0';
    return name;
}

static lnt_status stay(saying *s, const lnt_opened *o, const char *config)
{
    lnt_server server = {.name = name_of(o->path),
                         .config = config ? config : lnt_voice_metadata(o->model, LNT_VOICE_CONFIG_KEY),
                         .info = {.struct_bytes = sizeof server.info},
                         .prompts = s->prompts,
                         .policy = (lnt_queue_kind)given.queue,
                         .debug = given.debug,
                         .queue = {.cache = s->cache}};
    LNT_TRY(lnt_voice_get_info(s->voice, &server.info, s->err));
    LNT_TRY(take_options(s->voice, &server.how, s->err));
    return lnt_serve(&server, s->voice, given.addresses.item, given.addresses.n, s->err);
}

static lnt_status pack(saying *s)
{
    const lnt_packing what = {given.pack, given.output, (lnt_pack_kind)given.sound, given.quiet, given.json};
    LNT_TRY(take_options(s->voice, &s->how, s->err));
    return lnt_pack_prompts(&what, s->voice, &s->how, s->err);
}

/* ---- the command line ---- */

/* The same of packs. */
static const char *pack_contradiction(bool arguments, const lnt_texts *words, bool places)
{
    const bool texts = given.files.n || given.json_input;
    if (given.pack && (arguments || texts || places || given.print || given.addresses.n || given.prompts))
        return "--pack takes texts from its file, and -o names the pack";
    if (!given.pack != !given.output)
        return given.pack ? "--pack FILE -o FILE.lpk"
                          : "-o names the pack that --pack writes; -f writes sound";
    if (given.sound && !given.pack)
        return "--sound is for --pack";
    if (given.cache && (given.pack || given.print))
        return "--cache keeps what is spoken";
    if (given.prompts && (given.phonemes.n || given.ids.n || given.print || (texts && !given.json_input)))
        return "--prompts speaks prompts alone";
    if (given.prompts && !words->n && !given.json_input && !given.addresses.n)
        return "--prompts FILE NAME [SLOT=VALUE]…: which prompt?";
    return NULL;
}

/* What of the options does not go together; NULL: all of them do. */
static const char *contradiction(const lnt_texts *words)
{
    const int places = !!given.file + !!given.folder + given.raw;
    const bool out = given.raw || (given.file && strcmp(given.file, "-") == 0);
    const bool arguments = words->n || given.phonemes.n || given.ids.n;
    const char *packs = pack_contradiction(arguments, words, places > 0);
    if (packs)
        return packs;
    if (given.addresses.n &&
        (arguments || given.files.n || given.json_input || places || given.print || given.json))
        return "--serve takes texts from its clients, and sends them the sound";
    if (places > 1)
        return "one of -f, -d and --output_raw";
    if (given.json && out)
        return "--json goes to standard output, and there the sound goes";
    if (given.print && places)
        return "--print prints, and makes no sound";
    if (!isnan(given.length) && !isnan(given.speed))
        return "--speed or --length_scale";
    if (given.queue && !given.addresses.n && (arguments || places || given.print || given.pack))
        return "--queue is for lines that are played, and for --serve";
    if (given.lexicon && given.print != PRINT_PHONEMES)
        return "--lexicon is for --print phonemes";
    if (given.window > 1 << 20)
        return "--window: up to 1048576 frames";
    if (given.window && given.stream == STREAM_OFF)
        return "--window belongs to --stream auto";
    if (given.speed == 0)
        return "--speed 0 never ends";
    if (!(given.pitch >= 0.5 && given.pitch <= 2))
        return "--pitch is from 0.5 to 2";
    if (arguments && (given.files.n || given.json_input))
        return "texts on the command line, or --input_file and --json-input";
    return NULL;
}

/* Options of Piper's that no build has. */
static lnt_status refuse(lnt_error *err)
{
    LNT_REQUIRE(!given.gpu, err, LNT_E_UNSUPPORTED, "--cuda, --use_cuda: sound is computed on the CPU");
    LNT_REQUIRE(!given.tashkeel, err, LNT_E_UNSUPPORTED,
                "--tashkeel_model: no vowel marks are added to Arabic text, which must have them");
    return LNT_OK;
}

static lnt_sink sink_of_options(lnt_error *err)
{
    const lnt_sink_kind kind = given.file     ? LNT_SINK_FILE
                               : given.folder ? LNT_SINK_FOLDER
                               : given.raw    ? LNT_SINK_RAW
                                              : LNT_SINK_PLAY;
    return (lnt_sink){.kind = kind,
                      .path = given.file ? given.file : given.folder,
                      .named_by_text = given.naming == BY_TEXT,
                      .err = err};
}

static int run(const lnt_texts *words)
{
    const char *fault = contradiction(words), *model = find_model();
    lnt_text_source from = {.words = words,
                            .phonemes = &given.phonemes,
                            .ids = &given.ids,
                            .files = &given.files,
                            .json = given.json_input,
                            .queue = (lnt_queue_kind)given.queue,
                            .prompts = given.prompts != NULL};
    const char *config = NULL;
    lnt_error err = {0};
    saying s = {.sink = sink_of_options(&err),
                .own = {.kind = LNT_SINK_FOLDER, .err = &err},
                .json = {.out = stdout},
                .err = &err};
    lnt_opened o = {0};
    lnt_blob blob = {0};

    if (given.version) {
        printf("linnet %s\n", lnt_version());
        return LNT_EXIT_OK;
    }
    lnt_status status = refuse(&err);
    const bool needs_voice = given.print != PRINT_WORDS && !given.lexicon;
    if (status == LNT_OK && (fault || (needs_voice && !model)))
        return lnt_usage_error(&lnt_verb_say, "%s",
                               fault ? fault
                                     : "which voice? -m VOICE (the default one, " LNT_DEFAULT_VOICE
                                       ".lnt, is not where the program looks for it)");
    if (status == LNT_OK && needs_voice)
        status = open_voice(model, &o, &config, &s.voice, &err);
    if (status == LNT_OK && given.print == PRINT_PHONEMES)
        status = open_lexicon(s.voice, o.model, &blob, &s.lexicon, &err);
    if (status == LNT_OK && given.prompts)
        status = lnt_prompts_open(given.prompts, &s.prompts, &err);
    if (status == LNT_OK && given.cache)
        status = lnt_sound_cache_create(given.cache, (uint64_t)given.cache_bytes, &s.cache, &err);
    if (status == LNT_OK)
        status = given.pack ? pack(&s) : given.addresses.n ? stay(&s, &o, config) : say_all(&s, &from);
    if (lnt_text_queue_stop(&s.queue))
        lnt_text_close(&from);
    lnt_sink_free(&s.sink);
    lnt_sink_free(&s.own);
    lnt_lexicon_destroy(&s.lexicon);
    lnt_prompts_destroy(&s.prompts);
    lnt_sound_cache_destroy(&s.cache);
    lnt_blob_close(&blob);
    lnt_voice_destroy(&s.voice);
    lnt_opened_close(&o);
    return status == LNT_OK ? LNT_EXIT_OK : lnt_failed(&lnt_verb_say, &err);
}

void lnt_say_as_piper(void)
{
    given.stream = STREAM_OFF;
}

const lnt_verb lnt_verb_say = {
    .name = "say",
    .summary = "speak a text with a voice",
    .usage = "[-m VOICE] [text] [options]",
    .text = "Speaks texts given as words, in files or on standard input, one a line: played by aplay, or "
            "written.\n"
            "The voice is the one that comes with the program, which speaks English and needs nothing else, "
            "or one of\n"
            "Piper's, as a pair of files or converted into one. Where that asks for espeak-ng's phonemes, "
            "the program\n"
            "espeak-ng has to be there. Options are those of Piper's programs, spelled with '-' or '_'; "
            "called as `piper`\n"
            "this program is one.",
    .examples = "linnet say \"Your tea is ready.\"\n"
                "linnet say \"Your tea is ready.\" -f tea.wav\n"
                "linnet say --output_raw < story.txt | aplay -t raw -f S16_LE -r 16000\n"
                "linnet convert voice.onnx --config voice.onnx.json -o voice.lnt\n"
                "linnet say -m voice.lnt --json-input < lines.json\n"
                "linnet say --pack prompts.txt -o prompts.lpk --sound adpcm\n"
                "linnet say --prompts prompts.lpk door_open temp=21.5\n"
                "linnet say --cache /var/cache/voice --json-input < lines.json\n"
                "linnet say --serve 5000 --serve wyoming:0.0.0.0:10200\n"
                "linnet say \"I say [[ T AH0 M EY1 T OW0 ]].\" --print ids",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
