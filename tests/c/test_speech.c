/* test_speech.c — parts of the library of voices: JSON, clauses, letters, and a voice whose sound is its ids. */
#include "hear_voice.h"
#include "model_builder.h"

#include "speech/clauses.h"
#include "speech/letters.h"
#include "speech/linnet_voice.h"
#include "speech/sound/pitch.h"
#include "speech/read_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- pitch ---- */

enum { SOUND = 4001 };

/* x[0..SOUND), in pieces of `piece`: y, of the number returned. */
static size_t change_pitch(const float *x, double ratio, size_t piece, float *y)
{
    lnt_pitch p = {0};
    lnt_error err = {0};
    size_t n = 0;
    for (int twice = 0; twice < 2; twice++) {
        n = 0;
        assert_int_equal(lnt_pitch_begin(&p, ratio, &err), LNT_OK);
        for (size_t at = 0; at <= SOUND; at += piece) {
            const float *made;
            size_t m;
            const size_t size = SOUND - at < piece ? SOUND - at : piece;
            assert_int_equal(lnt_pitch_feed(&p, x + at, size, at + piece > SOUND, &made, &m, &err), LNT_OK);
            if (m)
                memcpy(y + n, made, m * sizeof *y);
            n += m;
        }
    }
    lnt_pitch_free(&p);
    return n;
}

/* A tone becomes one as many times as high, whatever the pieces; one that would be above the band goes. */
static void test_pitch(void **state)
{
    static const double ratios[] = {0.5, 0.77, 1, 1.3, 2};
    static float x[SOUND], whole[2 * SOUND + 2], pieces[2 * SOUND + 2];
    const double turn = 2 * 3.14159265358979323846;
    (void)state;
    for (size_t k = 0; k < sizeof ratios / sizeof *ratios; k++)
        for (double tone = 0.03; tone < 0.45; tone += 0.1) { /* of the rate */
            for (size_t i = 0; i < SOUND; i++)
                x[i] = (float)sin(turn * tone * (double)i);
            const size_t n = change_pitch(x, ratios[k], SOUND + 1, whole);
            assert_int_equal(n, (size_t)ceil(SOUND / ratios[k]));
            assert_int_equal(change_pitch(x, ratios[k], 97, pieces), n);
            assert_memory_equal(pieces, whole, n * sizeof *whole);
            const bool above = tone * ratios[k] > 0.56;
            if (!above && tone * ratios[k] > 0.44) /* where the filter falls */
                continue;
            for (size_t i = 100; i + 100 < n; i++)
                assert_true(fabs(whole[i] - (above ? 0 : sin(turn * tone * ratios[k] * (double)i))) < 2e-3);
        }
}

/* ---- JSON ---- */

static bool reads(const char *text, size_t bytes, lnt_bump *memory, const lnt_json_value **v)
{
    lnt_error err = {0};
    const lnt_status status = lnt_json_read(text, bytes, memory, v, &err);
    assert_true(status == LNT_OK || (status == LNT_E_VALUE && *err.message));
    return status == LNT_OK;
}

static void test_json_is_read(void **state)
{
    static const char text[] =
        " {\"a\" : [1, -2.5e+2, 0.125, 1E2], \"b\":{\"c\":null},\"a\\u0041\":\"x\\n\\u00e9\\ud83d\\ude00\","
        "\"t\":true, \"t\":false, \"e\":{}, \"n\":[]}\n";
    static const double numbers[] = {1, -250, 0.125, 100};
    lnt_bump memory;
    const lnt_json_value *v;
    (void)state;
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    assert_true(reads(text, strlen(text), &memory, &v));
    const lnt_json_value *a = lnt_json_member(v, "a")->first;
    for (size_t i = 0; i < 4; i++, a = a->next)
        assert_true(a->kind == LNT_JSON_NUMBER && a->number == numbers[i]);
    assert_null(a);
    assert_int_equal(lnt_json_member(lnt_json_member(v, "b"), "c")->kind, LNT_JSON_NULL);
    assert_string_equal(lnt_json_member(v, "aA")->text, "x\né😀");
    assert_true(lnt_json_member(v, "t")->number == 0); /* the last of two */
    assert_null(lnt_json_member(v, "e")->first);
    assert_null(lnt_json_member(v, "none"));
    assert_null(lnt_json_member(lnt_json_member(v, "n"), "a"));
    lnt_bump_free(&memory);
}

static void test_json_that_is_none_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        " ",
        "{",
        "[",
        "]",
        "{}x",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{1:2}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\\u0000\"",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "1e999",
        "nul",
        "truex",
        "NaN",
        "'a'",
        "\"\\udc00\\ud800\"",
        "[1]]",
        "\"\xc3",
    };
    lnt_bump memory;
    const lnt_json_value *v;
    (void)state;
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (reads(wrong[i], strlen(wrong[i]), &memory, &v))
            fail_msg("taken for JSON: %s", wrong[i]);
    assert_false(reads("1\0", 2, &memory, &v));
    assert_false(reads("\"a\0b\"", 5, &memory, &v));
    char deep[2 * LNT_JSON_DEPTH + 2];
    memset(deep, '[', LNT_JSON_DEPTH + 1);
    memset(deep + LNT_JSON_DEPTH + 1, ']', LNT_JSON_DEPTH + 1);
    assert_false(reads(deep, sizeof deep, &memory, &v));
    assert_true(reads(deep + 1, sizeof deep - 2, &memory, &v));
    const size_t n = 2 * (size_t)LNT_JSON_VALUES + 2;
    char *many = malloc(n);
    for (size_t i = 0; i < n; i++)
        many[i] = i % 2 ? '0' : ',';
    many[0] = '[';
    many[n - 1] = ']';
    assert_false(reads(many, n, &memory, &v));
    free(many);
    lnt_bump_free(&memory);
}

static void test_json_without_blanks(void **state)
{
    char text[] = " { \"a b\" : [ 1 ,\n2 ] , \"\\\" x\\\\\" : \" \" } ";
    (void)state;
    text[lnt_json_squeeze(text, strlen(text))] = '\0';
    assert_string_equal(text, "{\"a b\":[1,2],\"\\\" x\\\\\":\" \"}");
}

/* ---- clauses ---- */

/* Clauses as "text|mark", with a stroke behind those that end a sentence. */
static void expect_clauses(const char *text, const char *expected)
{
    lnt_bump memory;
    lnt_clause *c;
    size_t n, used = 0;
    lnt_error err = {0};
    char found[512] = "";
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    must(lnt_clauses_split(text, strlen(text), &memory, &c, &n, &err), &err);
    for (size_t i = 0; i < n; i++)
        used +=
            (size_t)snprintf(found + used, sizeof found - used, "%s%.*s|%c%s", i ? " " : "", (int)c[i].bytes,
                             c[i].text, c[i].mark ? c[i].mark : '0', c[i].ends ? "/" : "");
    assert_string_equal(found, expected);
    lnt_bump_free(&memory);
}

static void test_clauses(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"  \n ", ""},
        {"Hello, world. How?", "Hello,|, world.|./ How?|?/"},
        {"no mark", "no mark|0"},
        {"3.5 and 3,000: a:b; x;y", "3.5 and 3,000:|: a:b;|; x;y|0"},
        {"5 p.m. then 5 p.m. Then", "5 p.m. then 5 p.m.|./ Then|0"},
        {"a.m., we", "a.m., we|0"},
        {"ok?!, We", "ok?!,|?/ We|0"},
        {"wait... what....", "wait...|0 what....|0"},
        {"said \"Go.\" then", "said \"Go.\"|./ then|0"},
        {"Go.'s x", "Go.'s x|0"},
        {"a – b—c — d", "a –|; b—c —|; d|0"},
        {"x\n\ny.\n\nz.\nQ", "x|0/ y.|0/ z.|./ Q|0"},
        {"? x", "? x|0"},
        {"世界。世界？ok", "世界。|0/ 世界？|0/ ok|0"},
        {"Всё. потом. Ёж", "Всё. потом.|./ Ёж|0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_clauses(cases[i][0], cases[i][1]);
}

/* ---- letters ---- */

static void test_letters(void **state)
{
    uint32_t to[LNT_DECOMPOSED_MOST], marks[] = {'a', 0x307, 0x323, 'b', 0x323, 0x307};
    (void)state;
    assert_int_equal(lnt_decompose('a', to), 1);
    assert_int_equal(lnt_decompose(0x1ed9, to), 3); /* o, dot below, circumflex */
    assert_true(to[0] == 'o' && to[1] == 0x323 && to[2] == 0x302);
    assert_int_equal(lnt_decompose(0xd55c, to), 3);
    assert_true(to[0] == 0x1112 && to[1] == 0x1161 && to[2] == 0x11ab);
    assert_int_equal(lnt_decompose(0x10ffff, to), 1);
    lnt_canonical_order(marks, 6);
    assert_true(marks[1] == 0x323 && marks[2] == 0x307 && marks[3] == 'b' && marks[4] == 0x323);
    assert_true(lnt_small_letter('A') == 'a' && lnt_small_letter(0x416) == 0x436 &&
                lnt_small_letter(0x130) == 0x130);
    assert_true(lnt_small_letter('a') == 'a' && lnt_small_letter(0x10000) == 0x10000);
    assert_true(lnt_is_small_letter('z') && lnt_is_small_letter(0x3c9) && !lnt_is_small_letter('Z'));
    assert_false(lnt_is_small_letter('1') || lnt_is_small_letter(0x4e16) || lnt_is_small_letter(0));
}

/* ---- a voice ---- */

static const char CONFIG[] =
    "{\"audio\":{\"sample_rate\":100},\"phoneme_type\":\"text\",\"num_speakers\":1,"
    "\"phoneme_id_map\":{\"^\":[1],\"_\":[0],\"$\":[2],\"a\":[8],\"b\":[4],\" \":[3]}}";

typedef struct voice_under_test {
    lnt_model *model;
    lnt_voice *voice;
    void *image;
} voice_under_test;

/* Its sound is its ids. */
static void open_voice(voice_under_test *v)
{
    static builder b;
    const lnt_voice_options options = {.struct_bytes = sizeof options, .config = CONFIG};
    builder_begin(&b);
    const uint32_t in = builder_input(&b, "input", LNT_INT64, 2, (int64_t[]){1, -2});
    const uint32_t out = builder_node(&b, "Cast", "output", 1, &in);
    must(lnt_gnode_set_int(&b.g, b.g.value[out].producer, "to", LNT_FLOAT), &b.err);
    builder_output(&b, out);
    v->model = builder_end(&b, LNT_OPT_ALL, &v->image);
    must(lnt_voice_create(v->model, &options, &v->voice, &b.err), &b.err);
}

static void close_voice(voice_under_test *v)
{
    lnt_voice_destroy(&v->voice);
    lnt_voice_destroy(&v->voice);
    lnt_model_destroy(&v->model);
    lnt_free(&lnt_malloc_allocator, v->image);
}

static void test_a_voice_speaks(void **state)
{
    voice_under_test v;
    lnt_say_options how;
    lnt_error err = {0};
    heard h = {.most = 4096};
    static const int16_t expected[] = {4095, 0, 32767, 0, 16383, 0, 8191};
    (void)state;
    open_voice(&v);
    must(lnt_voice_say(v.voice, "aBx", NULL, hear, &h, &err), &err);
    assert_int_equal(h.n, 7);
    assert_memory_equal(h.pcm, expected, sizeof expected);
    assert_int_equal(lnt_voice_missing(v.voice), 1);
    lnt_voice_defaults(v.voice, &how);
    how.form = LNT_VOICE_PHONEMES;
    how.silence = &(lnt_voice_silence){"a", 11}; /* longer than what is sent at once */
    how.n_silences = 1;
    h.n = 0;
    must(lnt_voice_say(v.voice, "ab", &how, hear, &h, &err), &err);
    assert_int_equal(h.n, 5 + 1100 + 5);
    how.form = LNT_VOICE_IDS;
    how.as_computed = true;
    how.volume = 0.25f;
    h.n = 0;
    must(lnt_voice_say(v.voice, "2 0 1", &how, hear, &h, &err), &err);
    assert_true(h.n == 3 && h.pcm[0] == 16383 && h.pcm[2] == 8191);
    close_voice(&v);
}

static void test_a_voice_that_is_stopped_speaks_again(void **state)
{
    voice_under_test v;
    lnt_error err = {0};
    heard h = {.most = 0};
    (void)state;
    open_voice(&v);
    assert_int_equal(lnt_voice_say(v.voice, "ab", NULL, hear, &h, &err), LNT_E_CANCELLED);
    lnt_voice_cancel(v.voice);
    assert_int_equal(lnt_voice_say(v.voice, "ab", NULL, hear, &h, NULL), LNT_E_CANCELLED);
    h = (heard){.most = 4096};
    must(lnt_voice_say(v.voice, "ab", NULL, hear, &h, (lnt_error[]){{0}}), &err);
    assert_int_equal(h.n, 7);
    close_voice(&v);
}

static void test_sentences_and_what_is_known(void **state)
{
    voice_under_test v;
    lnt_error err = {0};
    const lnt_voice_sentence *s;
    size_t n;
    lnt_voice_info info = {.struct_bytes = sizeof info};
    (void)state;
    open_voice(&v);
    must(lnt_voice_sentences(v.voice, "ab", LNT_VOICE_TEXT, &s, &n, &err), &err);
    assert_true(n == 1 && s->n_ids == 7 && s->ids[2] == 8 && s->ids[6] == 2 && s->missing == 0);
    assert_string_equal(s->phonemes, "ab");
    must(lnt_voice_sentences(v.voice, "", LNT_VOICE_TEXT, &s, &n, &err), &err);
    assert_int_equal(n, 0);
    must(lnt_voice_get_info(v.voice, &info, &err), &err);
    assert_true(info.rate == 100 && info.n_speakers == 1 && info.n_named == 0 && !info.espeak_voice);
    info.struct_bytes = 0;
    assert_int_equal(lnt_voice_get_info(v.voice, &info, NULL), LNT_E_ARGUMENT);
    close_voice(&v);
}

static void test_what_is_refused(void **state)
{
    voice_under_test v;
    lnt_say_options how;
    heard h = {.most = 4096};
    lnt_voice *other;
    const lnt_voice_options nothing = {.struct_bytes = 0},
                            no_json = {.struct_bytes = sizeof no_json, .config = "{}"};
    (void)state;
    open_voice(&v);
    assert_int_equal(lnt_voice_create(v.model, &nothing, &other, NULL), LNT_E_ARGUMENT);
    assert_int_equal(lnt_voice_create(v.model, &no_json, &other, NULL), LNT_E_VALUE);
    assert_int_equal(lnt_voice_create(v.model, NULL, &other, NULL), LNT_E_NOT_FOUND);
    assert_null(other);
    lnt_voice_defaults(v.voice, &how);
    how.speaker = 1;
    assert_int_equal(lnt_voice_say(v.voice, "a", &how, hear, &h, NULL), LNT_E_ARGUMENT);
    lnt_voice_defaults(v.voice, &how);
    how.volume = -1;
    assert_int_equal(lnt_voice_say(v.voice, "a", &how, hear, &h, NULL), LNT_E_ARGUMENT);
    assert_int_equal(lnt_voice_say(v.voice, "a\xff", NULL, hear, &h, NULL), LNT_E_VALUE);
    char *long_text = malloc(LNT_VOICE_TEXT_MOST + 2);
    memset(long_text, 'a', LNT_VOICE_TEXT_MOST + 1);
    long_text[LNT_VOICE_TEXT_MOST + 1] = '\0';
    assert_int_equal(lnt_voice_say(v.voice, long_text, NULL, hear, &h, NULL), LNT_E_LIMIT);
    free(long_text);
    assert_int_equal(h.n, 0);
    close_voice(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pitch),
        cmocka_unit_test(test_json_is_read),
        cmocka_unit_test(test_json_that_is_none_is_refused),
        cmocka_unit_test(test_json_without_blanks),
        cmocka_unit_test(test_clauses),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_a_voice_speaks),
        cmocka_unit_test(test_a_voice_that_is_stopped_speaks_again),
        cmocka_unit_test(test_sentences_and_what_is_known),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
