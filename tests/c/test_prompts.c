/* test_prompts.c — packs of prompts, whole and damaged; texts with slots; samples of 4 bits. */
#include "hear_voice.h"
#include "model_builder.h"

#include "formats/hash.h"
#include "speech/prompts/adpcm.h"
#include "speech/prompts/pack.h"
#include "speech/prompts/slots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- samples of 4 bits ---- */

static double decibels(const int16_t *pcm, const int16_t *decoded, size_t n)
{
    double signal = 0, noise = 1e-9;
    for (size_t i = 0; i < n; i++) {
        signal += (double)pcm[i] * pcm[i];
        noise += ((double)pcm[i] - decoded[i]) * ((double)pcm[i] - decoded[i]);
    }
    return 10 * log10(signal / noise);
}

static void decode(const uint8_t *bytes, size_t n, int16_t *pcm)
{
    for (size_t at = 0; at < n; at += LNT_ADPCM_SAMPLES, bytes += LNT_ADPCM_BYTES)
        assert_true(
            lnt_adpcm_decode(bytes, n - at < LNT_ADPCM_SAMPLES ? n - at : LNT_ADPCM_SAMPLES, pcm + at));
}

static void test_samples_of_four_bits(void **state)
{
    enum { N = 3 * LNT_ADPCM_SAMPLES + 5 };
    static int16_t pcm[N], decoded[N + 1];
    static uint8_t bytes[4 * LNT_ADPCM_BYTES + 1];
    (void)state;
    assert_true(lnt_adpcm_bytes(0) == 0 && lnt_adpcm_bytes(1) == 4 && lnt_adpcm_bytes(2) == 5 &&
                lnt_adpcm_bytes(3) == 5 && lnt_adpcm_bytes(1017) == 512 && lnt_adpcm_bytes(1018) == 516);
    for (int i = 0; i < N; i++)
        pcm[i] = (int16_t)(20000 * sin(i * i * 1e-4));
    bytes[lnt_adpcm_bytes(N)] = 0xa5;
    decoded[N] = 4711;
    lnt_adpcm_encode(pcm, N, bytes);
    decode(bytes, N, decoded);
    assert_true(bytes[lnt_adpcm_bytes(N)] == 0xa5 && decoded[N] == 4711);
    assert_true(decibels(pcm, decoded, N) > 20);
    for (int i = 0; i < N; i++)
        pcm[i] = i / 40 % 2 ? INT16_MAX : INT16_MIN; /* steps as large as there are */
    lnt_adpcm_encode(pcm, N, bytes);
    decode(bytes, N, decoded);
    assert_true(decibels(pcm, decoded, N) > 5);
    bytes[2] = 89;
    assert_false(lnt_adpcm_decode(bytes, 1, decoded));
    bytes[2] = 88;
    bytes[3] = 1;
    assert_false(lnt_adpcm_decode(bytes, 1, decoded));
}

/* ---- slots ---- */

static lnt_status fill(const char *text, const lnt_slot_value *value, size_t n, const char *expected)
{
    lnt_bump memory;
    const char *filled = NULL;
    lnt_error err = {0};
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    const lnt_status status = lnt_slots_fill(text, value, n, &memory, &filled, &err);
    if (status == LNT_OK)
        assert_string_equal(filled, expected);
    else
        assert_true(*err.message);
    lnt_bump_free(&memory);
    return status;
}

static void test_slots(void **state)
{
    static const struct {
        const char *text, *slot, *value, *filled;
    } cases[] = {
        {"It is {t:time}.", "t", "9:05", "It is 9:05."},
        {"{t:time}", "t", "23:59:59", "23:59:59"},
        {"{x:number} or {x}", "x", "-21.5", "-21.5 or -21.5"},
        {"{n:unit kWh}!", "n", "3", "3 kWh!"},
        {"{n:unit m per s}", "n", "0.5", "0.5 m per s"},
        {"{who:text}, é {{who}}", "who", "Ann {b} é", "Ann {b} é, é {who}"},
    };
    static const char *const no_slots[] = {
        "{",        "}",         "a}b",          "{}", "{1}",     "{a b}",  "{a:}", "{a:date}",
        "{a:unit}", "{a:unit }", "{a:number x}", "{a", "{a:time", "{{{a}}", "{é}",  "a\xff{b}"};
    static const char *const no_numbers[] = {"", "-", "1.", ".5", "1e3", "1,5", "5 ", "+1", "nan", "0x1"};
    static const char *const no_times[] = {"",      "9",       "24:00",  "9:5",  "9:60",
                                           "9:05:", "9:05:60", "123:00", "9:05 "};
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const lnt_slot_value value = {cases[i].slot, cases[i].value};
        assert_int_equal(fill(cases[i].text, &value, 1, cases[i].filled), LNT_OK);
    }
    assert_int_equal(fill("{{}} a", NULL, 0, "{} a"), LNT_OK);
    assert_int_equal(fill("", NULL, 0, ""), LNT_OK);
    for (size_t i = 0; i < sizeof no_slots / sizeof *no_slots; i++)
        if (lnt_slots_check(no_slots[i], &n, NULL) != LNT_E_VALUE)
            fail_msg("taken for slots: %s", no_slots[i]);
    for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++)
        assert_int_equal(fill("{x:number}", &(lnt_slot_value){"x", no_numbers[i]}, 1, ""), LNT_E_VALUE);
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++)
        assert_int_equal(fill("{x:time}", &(lnt_slot_value){"x", no_times[i]}, 1, ""), LNT_E_VALUE);
    assert_int_equal(fill("{x}", &(lnt_slot_value){"x", "a\nb"}, 1, ""), LNT_E_VALUE);
    assert_int_equal(fill("{x}", &(lnt_slot_value){"x", "\xff"}, 1, ""), LNT_E_VALUE);
    const lnt_slot_value two[] = {{"x", "1"}, {"y", "2"}}, twice[] = {{"x", "1"}, {"x", "1"}};
    assert_int_equal(fill("{x}{y}", two, 2, "12"), LNT_OK);
    assert_int_equal(fill("{x}{y}", two, 1, ""), LNT_E_ARGUMENT);
    assert_int_equal(fill("{x}", two, 2, ""), LNT_E_ARGUMENT);
    assert_int_equal(fill("{x}", twice, 2, ""), LNT_E_ARGUMENT);
}

/* ---- packs ---- */

static const char CONFIG[] =
    "{\"audio\":{\"sample_rate\":100},\"phoneme_type\":\"text\",\"num_speakers\":1,"
    "\"phoneme_id_map\":{\"^\":[1],\"_\":[0],\"$\":[2],\"a\":[8],\"b\":[4],\"5\":[3]}}",
                  OTHER[] =
                      "{\"audio\":{\"sample_rate\":100},\"phoneme_type\":\"text\",\"num_speakers\":1,"
                      "\"phoneme_id_map\":{\"^\":[1],\"_\":[0],\"$\":[2],\"a\":[7],\"b\":[4],\"5\":[3]}}";

typedef struct packed_voice {
    lnt_model *model;
    lnt_voice *voice;
    void *image, *pack;
    size_t bytes;
} packed_voice;

/* Its sound is its ids. */
static void open_voice(packed_voice *v, const char *config)
{
    static builder b;
    const lnt_voice_options options = {.struct_bytes = sizeof options, .config = config};
    builder_begin(&b);
    const uint32_t in = builder_input(&b, "input", LNT_INT64, 2, (int64_t[]){1, -2});
    const uint32_t out = builder_node(&b, "Cast", "output", 1, &in);
    must(lnt_gnode_set_int(&b.g, b.g.value[out].producer, "to", LNT_FLOAT), &b.err);
    builder_output(&b, out);
    v->model = builder_end(&b, LNT_OPT_ALL, &v->image);
    must(lnt_voice_create(v->model, &options, &v->voice, &b.err), &b.err);
    v->pack = NULL;
}

static void pack(packed_voice *v, lnt_pack_kind kind, const lnt_say_options *how)
{
    lnt_prompt prompt[] = {
        {"long", "abababababababababab", 0}, {"slot", "a{n:number}", 0}, {"empty", "", 0}, {"é", "b{{x", 0}};
    lnt_error err = {0};
    lnt_free(&lnt_malloc_allocator, v->pack);
    must(lnt_pack_build(v->voice, prompt, 4, how, kind, &v->pack, &v->bytes, &err), &err);
    assert_true(prompt[0].missing == 0 && prompt[3].missing == 2);
}

static void close_voice(packed_voice *v)
{
    lnt_free(&lnt_malloc_allocator, v->pack);
    lnt_voice_destroy(&v->voice);
    lnt_model_destroy(&v->model);
    lnt_free(&lnt_malloc_allocator, v->image);
}

/* What the voice says of the text itself. */
static heard spoken(packed_voice *v, const char *text, const lnt_say_options *how)
{
    heard h = {.most = 4096};
    lnt_error err = {0};
    must(lnt_voice_say(v->voice, text, how, hear, &h, &err), &err);
    return h;
}

static lnt_status say(packed_voice *v, const char *name, const char *number, const lnt_say_options *how,
                      heard *h, lnt_error *err)
{
    lnt_prompts *p;
    uint32_t k;
    const lnt_slot_value value = {"n", number};
    *h = (heard){.most = 4096};
    must(lnt_prompts_create(v->pack, v->bytes, &p, err), err);
    must(lnt_prompts_find(p, name, &k, err), err);
    const lnt_status status =
        lnt_prompts_say(p, k, number ? &value : NULL, number != NULL, v->voice, how, hear, h, err);
    lnt_prompts_destroy(&p);
    lnt_prompts_destroy(&p);
    return status;
}

static void expect(packed_voice *v, const char *name, const char *number, const lnt_say_options *how,
                   const char *text)
{
    heard h, expected = spoken(v, text, how);
    lnt_error err = {0};
    must(say(v, name, number, how, &h, &err), &err);
    assert_int_equal(h.n, expected.n);
    assert_memory_equal(h.pcm, expected.pcm, h.n * sizeof *h.pcm);
}

static void test_a_pack_speaks_as_the_voice(void **state)
{
    packed_voice v;
    lnt_say_options how;
    lnt_error err = {0};
    heard h;
    (void)state;
    open_voice(&v, CONFIG);
    for (lnt_pack_kind kind = LNT_PACK_NONE; kind <= LNT_PACK_PCM; kind++) {
        lnt_voice_defaults(v.voice, &how);
        pack(&v, kind, NULL);
        expect(&v, "long", NULL, NULL, "abababababababababab");
        expect(&v, "empty", NULL, NULL, "");
        expect(&v, "é", NULL, NULL, "b{x");
        expect(&v, "slot", "55", NULL, "a55");
        how.volume = 0.5f; /* not those that the pack was made with */
        expect(&v, "long", NULL, &how, "abababababababababab");
        how.silence = &(lnt_voice_silence){"a", 0.5};
        how.n_silences = 1;
        expect(&v, "long", NULL, &how, "abababababababababab");
        pack(&v, kind, &how);
        expect(&v, "long", NULL, &how, "abababababababababab");
        expect(&v, "long", NULL, NULL, "abababababababababab");
        assert_int_equal(say(&v, "slot", NULL, NULL, &h, &err), LNT_E_ARGUMENT);
        lnt_error_clear(&err);
        assert_int_equal(say(&v, "long", "5", NULL, &h, &err), LNT_E_ARGUMENT);
        lnt_error_clear(&err);
    }
    close_voice(&v);
}

static void test_what_a_pack_tells(void **state)
{
    packed_voice v;
    lnt_prompts *p;
    lnt_error err = {0};
    uint32_t k;
    heard h = {.most = 4096};
    lnt_prompt_info info = {.struct_bytes = sizeof info};
    (void)state;
    open_voice(&v, CONFIG);
    pack(&v, LNT_PACK_ADPCM, NULL);
    must(lnt_prompts_create(v.pack, v.bytes, &p, &err), &err);
    assert_true(lnt_prompts_count(p) == 4 && lnt_prompts_rate(p) == 100);
    must(lnt_prompts_find(p, "slot", &k, &err), &err);
    must(lnt_prompts_info(p, k, &info, &err), &err);
    assert_true(info.n_slots == 1 && !info.has_sound && info.samples == 0);
    assert_string_equal(info.name, "slot");
    assert_string_equal(info.text, "a{n:number}");
    assert_int_equal(lnt_prompts_sound(p, k, hear, &h, NULL), LNT_E_NOT_FOUND);
    must(lnt_prompts_find(p, "long", &k, &err), &err);
    must(lnt_prompts_info(p, k, &info, &err), &err);
    const heard expected = spoken(&v, info.text, NULL);
    assert_true(info.has_sound && info.samples == expected.n);
    must(lnt_prompts_sound(p, k, hear, &h, &err), &err);
    assert_int_equal(h.n, expected.n);
    h.most = 0;
    assert_int_equal(lnt_prompts_sound(p, k, hear, &h, NULL), LNT_E_CANCELLED);
    assert_int_equal(lnt_prompts_find(p, "nobody", &k, NULL), LNT_E_NOT_FOUND);
    assert_int_equal(lnt_prompts_info(p, 4, &info, NULL), LNT_E_ARGUMENT);
    info.struct_bytes = 0;
    assert_int_equal(lnt_prompts_info(p, 0, &info, NULL), LNT_E_ARGUMENT);
    lnt_prompts_destroy(&p);
    close_voice(&v);
}

static void test_a_pack_of_another_voice(void **state)
{
    packed_voice v, other;
    lnt_error err = {0};
    heard h;
    (void)state;
    open_voice(&v, CONFIG);
    open_voice(&other, OTHER);
    pack(&v, LNT_PACK_PCM, NULL);
    lnt_voice *own = v.voice;
    v.voice = other.voice;
    assert_int_equal(say(&v, "long", NULL, NULL, &h, &err), LNT_E_VALUE);
    assert_non_null(strstr(err.message, "another voice"));
    assert_int_equal(h.n, 0);
    v.voice = own;
    close_voice(&v);
    close_voice(&other);
}

/* Is the file refused, or all of its sounds but those that are as they were? */
static bool is_refused(const void *data, size_t bytes)
{
    lnt_prompts *p;
    lnt_error err = {0};
    bool refused = false;
    if (lnt_prompts_create(data, bytes, &p, &err) != LNT_OK) {
        assert_true(err.code == LNT_E_FILE && *err.message && !p);
        return true;
    }
    for (uint32_t k = 0; k < lnt_prompts_count(p); k++) {
        heard h = {.most = 4096};
        refused |= lnt_prompts_sound(p, k, hear, &h, NULL) == LNT_E_FILE && h.n == 0;
    }
    lnt_prompts_destroy(&p);
    return refused;
}

static void test_damage_is_refused(void **state)
{
    packed_voice v;
    (void)state;
    open_voice(&v, CONFIG);
    for (lnt_pack_kind kind = LNT_PACK_NONE; kind < LNT_PACK_KINDS; kind++) {
        pack(&v, kind, NULL);
        assert_false(is_refused(v.pack, v.bytes));
        for (size_t i = 0; i < v.bytes; i++) {
            uint8_t *at = (uint8_t *)v.pack + i;
            for (unsigned flip = 1; flip < 256; flip = flip == 1 ? 255 : 256) {
                *at ^= (uint8_t)flip;
                if (!is_refused(v.pack, v.bytes))
                    fail_msg("byte %zu of %zu may be another", i, v.bytes);
                *at ^= (uint8_t)flip;
            }
            void *shorter = malloc(i + 1); /* so that a sanitizer sees what is read behind it */
            memcpy(shorter, v.pack, i);
            assert_true(is_refused(shorter, i));
            free(shorter);
        }
    }
    close_voice(&v);
}

/* Numbers that do not fit, with the hash made right. */
static void test_numbers_that_do_not_fit(void **state)
{
    static const uint64_t wrong[] = {0, 1, 63, 64, 65, 4096, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    static const uint8_t places[] = {HEAD_PROMPTS, HEAD_RATE, HEAD_FRONT, HEAD_BYTES};
    packed_voice v;
    (void)state;
    open_voice(&v, CONFIG);
    pack(&v, LNT_PACK_ADPCM, NULL);
    uint8_t *changed = malloc(v.bytes);
    for (size_t at = 0; at < sizeof places + LNT_PACK_RECORD / 2; at++)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            const size_t place =
                at < sizeof places ? places[at] : LNT_PACK_HEAD + LNT_PACK_RECORD + 2 * (at - sizeof places);
            uint64_t front = 0;
            lnt_prompts *p;
            heard h = {.most = 4096};
            memcpy(changed, v.pack, v.bytes);
            for (unsigned i = 0; i < (at < 2 || place >= LNT_PACK_HEAD ? 4 : 8); i++)
                changed[place + i] = (uint8_t)(wrong[k] >> 8 * i);
            for (unsigned i = 8; i-- > 0;)
                front = front << 8 | changed[HEAD_FRONT + i];
            if (front >= 8 && front <= v.bytes)
                for (unsigned i = 0; i < 8; i++)
                    changed[front - 8 + i] = (uint8_t)(lnt_hash(changed, (size_t)front - 8) >> 8 * i);
            if (lnt_prompts_create(changed, v.bytes, &p, NULL) == LNT_OK)
                for (uint32_t n = 0; n < lnt_prompts_count(p); n++, h.n = 0)
                    (void)lnt_prompts_sound(p, n, hear, &h, NULL);
            lnt_prompts_destroy(&p);
        }
    free(changed);
    close_voice(&v);
}

static void test_lists(void **state)
{
    static const char text[] = "# all\n\n  door_open | The door is open. \r\n#x|y\nbar|a|b\nlast|";
    lnt_bump memory;
    lnt_prompt *prompt;
    size_t n;
    lnt_error err = {0};
    (void)state;
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    must(lnt_prompt_list_read("x.txt", text, &memory, &prompt, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_string_equal(prompt[0].name, "door_open");
    assert_string_equal(prompt[0].text, "The door is open.");
    assert_string_equal(prompt[1].text, "a|b");
    assert_string_equal(prompt[2].text, "");
    assert_int_equal(lnt_prompt_list_read("x.txt", "a|b\nc\n", &memory, &prompt, &n, &err), LNT_E_VALUE);
    assert_non_null(strstr(err.message, "x.txt, line 2"));
    lnt_bump_free(&memory);
}

static void test_what_is_no_prompt(void **state)
{
    static const char *const names[] = {"", "a b", "a=b", "a|b", "#a", "a\xff", "a\tb"};
    packed_voice v;
    lnt_error err = {0};
    void *image;
    size_t bytes;
    (void)state;
    open_voice(&v, CONFIG);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lnt_prompt prompt = {names[i], "a", 0};
        assert_int_equal(lnt_pack_build(v.voice, &prompt, 1, NULL, LNT_PACK_PCM, &image, &bytes, NULL),
                         LNT_E_VALUE);
        assert_null(image);
    }
    lnt_prompt twice[] = {{"x", "a", 0}, {"y", "b", 0}, {"x", "b", 0}}, wrong = {"x", "a{", 0};
    assert_int_equal(lnt_pack_build(v.voice, twice, 3, NULL, LNT_PACK_NONE, &image, &bytes, &err),
                     LNT_E_VALUE);
    assert_non_null(strstr(err.message, "two prompts are called x"));
    assert_int_equal(lnt_pack_build(v.voice, &wrong, 1, NULL, LNT_PACK_NONE, &image, &bytes, NULL),
                     LNT_E_VALUE);
    close_voice(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_of_four_bits),       cmocka_unit_test(test_slots),
        cmocka_unit_test(test_a_pack_speaks_as_the_voice), cmocka_unit_test(test_what_a_pack_tells),
        cmocka_unit_test(test_a_pack_of_another_voice),    cmocka_unit_test(test_damage_is_refused),
        cmocka_unit_test(test_numbers_that_do_not_fit),    cmocka_unit_test(test_lists),
        cmocka_unit_test(test_what_is_no_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
