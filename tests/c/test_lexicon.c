/* test_lexicon.c — how words and texts sound by a small lexicon, tests/data/words.lex, whole and damaged. */
#include "formats/hash.h"
#include "speech/homographs.h"
#include "speech/lexicon.h"
#include "speech/pronounce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct image {
    uint8_t *bytes;
    size_t size;
} image;

static image read_words(void)
{
    image file = {0};
    FILE *in = fopen("tests/data/words.lex", "rb");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    file.size = (size_t)ftell(in);
    rewind(in);
    file.bytes = malloc(file.size);
    assert_non_null(file.bytes);
    assert_int_equal(fread(file.bytes, 1, file.size, in), file.size);
    fclose(in);
    return file;
}

/* Makes the hash of changed bytes right. */
static void repair(image *file)
{
    const uint64_t hash = lnt_hash(file->bytes, file->size - 8);
    for (unsigned i = 0; i < 8; i++)
        file->bytes[file->size - 8 + i] = (uint8_t)(hash >> 8 * i);
}

static lnt_lexicon *open_words(const image *file)
{
    lnt_lexicon *l;
    lnt_error err = {0};
    if (lnt_lexicon_create(file->bytes, file->size, &l, &err) != LNT_OK)
        fail_msg("%s", err.message);
    return l;
}

static void expect(lnt_lexicon *l, const char *text, const char *phonemes)
{
    const char *got;
    lnt_error err = {0};
    if (lnt_lexicon_phonemes(l, text, &got, &err) != LNT_OK)
        fail_msg("%s: %s", text, err.message);
    assert_string_equal(got, phonemes);
}

/* ---- texts ---- */

static void words_and_endings(void **state)
{
    (void)state;
    image file = read_words();
    lnt_lexicon *l = open_words(&file);
    expect(l, "bake", "B EY1 K");             /* a tree */
    expect(l, "colonel", "K ER1 N AH0 L");    /* an entry */
    expect(l, "colonels", "K ER1 N AH0 L Z"); /* and its endings */
    expect(l, "colonel's", "K ER1 N AH0 L Z");
    expect(l, "colonels'", "K ER1 N AH0 L Z");
    expect(l, "the church's", "DH AH0 | CH ER1 CH AH0 Z");
    expect(l, "churches", "CH ER1 CH AH0 Z");
    expect(l, "", "");
    expect(l, " \n ", "");
    expect(l, "?!", "");
    lnt_lexicon_destroy(&l);
    lnt_lexicon_destroy(&l);
    free(file.bytes);
}

static void texts_and_what_words_do_to_each_other(void **state)
{
    (void)state;
    image file = read_words();
    lnt_lexicon *l = open_words(&file);
    expect(l, "Hello, world.", "HH AH0 L OW1 , W ER1 L D .");
    expect(l, "no; yes: go? stop!", "N OW1 ; Y EH1 S : G OW1 ? S T AA1 P !");
    expect(l, "the door, the island, the eight",
           "DH AH0 | D AO1 R , DH IY0 | AY1 L AH0 N D , DH IY0 | EY1 T");
    expect(l, "the, island", "DH AH0 , AY1 L AH0 N D");
    expect(l, "A TV and two PCs", "AH0 | T IY1 | V IY1 | AH0 N D | T UW1 | P IY1 | S IY1 Z");
    expect(l, "7-9", "S EH1 V AH0 N | T UW1 | N AY1 N");
    lnt_lexicon_destroy(&l);
    free(file.bytes);
}

static void phonemes_pass_through(void **state)
{
    (void)state;
    image file = read_words();
    lnt_lexicon *l = open_words(&file);
    const char *got;
    lnt_error err = {0};
    expect(l, "[[HH AH0 L OW1]]", "HH AH0 L OW1");
    expect(l, "say [[ AH L , \n OW1 | K ]]no", "S EY1 | AH0 L , OW1 | K | N OW1");
    expect(l, "[[]] go [[ | , | ]]", "G OW1 ,");
    expect(l, "go [[K", "G OW1 , K EY1");
    static const char *const wrong[] = {"[[HELLO]]", "[[AA3]]", "[[K1]]", "[[hh]]", "[[A]]", "[[,,]]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(lnt_lexicon_phonemes(l, wrong[i], &got, &err), LNT_E_VALUE);
        assert_non_null(strstr(err.message, "ARPAbet"));
        lnt_error_clear(&err);
    }
    assert_int_equal(lnt_lexicon_phonemes(l, "\xff", &got, &err), LNT_E_VALUE);
    lnt_lexicon_destroy(&l);
    free(file.bytes);
}

/* Of three words the one in the middle. */
static const char *sense(const char *before, const char *word, const char *behind, char mark_before)
{
    lnt_word w[3] = {{before, (uint32_t)strlen(before), mark_before},
                     {word, (uint32_t)strlen(word), 0},
                     {behind, (uint32_t)strlen(behind), 0}};
    const char *phones = lnt_homograph(&w[1]);
    return phones ? phones : "";
}

static void senses(void **state)
{
    (void)state;
    assert_string_equal(sense("", "record", "the", 0), "R IH0 K AO1 R D");
    assert_string_equal(sense("to", "record", "", 0), "R IH0 K AO1 R D");
    assert_string_equal(sense("the", "record", "is", 0), "R EH1 K ER0 D");
    assert_string_equal(sense("to", "record", "", ','), "R EH1 K ER0 D");
    assert_string_equal(sense("", "read", "the", 0), "R IY1 D");
    assert_string_equal(sense("have", "read", "it", 0), "R EH1 D");
    assert_string_equal(sense("we", "live", "here", 0), "L IH1 V");
    assert_string_equal(sense("a", "live", "show", 0), "L AY1 V");
    assert_string_equal(sense("she", "lives", "", 0), "L IH1 V Z");
    assert_string_equal(sense("our", "lives", "", 0), "L AY1 V Z");
    assert_string_equal(sense("in", "use", "", 0), "Y UW1 S");
    assert_string_equal(sense("to", "use", "it", 0), "Y UW1 Z");
    assert_string_equal(sense("", "close", "the", 0), "K L OW1 Z");
    assert_string_equal(sense("too", "close", "to", 0), "K L OW1 S");
    assert_string_equal(sense("the", "wind", "is", 0), "W IH1 N D");
    assert_string_equal(sense("", "wind", "up", 0), "W AY1 N D");
    assert_string_equal(sense("the", "lead", "", 0), "L IY1 D");
    assert_string_equal(sense("", "reads", "", 0), "");
    assert_string_equal(sense("t", "record", "th", 0), "R EH1 K ER0 D"); /* parts of words of the lists */
}

/* ---- damage ---- */

static void expect_refused(const uint8_t *bytes, size_t size)
{
    lnt_lexicon *l;
    lnt_error err = {0};
    assert_int_equal(lnt_lexicon_create(bytes, size, &l, &err), LNT_E_FILE);
    assert_true(*err.message);
    assert_null(l);
}

static void every_flipped_bit_and_every_cut_is_refused(void **state)
{
    (void)state;
    image file = read_words();
    for (size_t i = 0; i < file.size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            file.bytes[i] ^= (uint8_t)(1u << bit);
            expect_refused(file.bytes, file.size);
            file.bytes[i] ^= (uint8_t)(1u << bit);
        }
    for (size_t size = 0; size < file.size; size++) {
        image cut = {malloc(size ? size : 1), size};
        memcpy(cut.bytes, file.bytes, size);
        if (size >= 8)
            repair(&cut);
        expect_refused(cut.bytes, cut.size);
        free(cut.bytes);
    }
    free(file.bytes);
}

/* Whatever it says, it says phonemes. */
static void read_all(lnt_lexicon *l)
{
    static const char text[] =
        "A colonel's boxes, the island; don't measure music: union of okay churches singing "
        "qwertyuiopasdfghjklzxcvbnm's liked battery [[K]]";
    static const char allowed[] = "ABCDEFGHIJKLMNOPRSTUVWYZ012 |,;:";
    const char *got;
    lnt_error err = {0};
    assert_int_equal(lnt_lexicon_phonemes(l, text, &got, &err), LNT_OK);
    assert_int_equal(strspn(got, allowed), strlen(got));
}

static void damage_with_a_good_hash_is_refused_or_harmless(void **state)
{
    (void)state;
    static const uint8_t values[] = {0x00, 0x01, 0x02, 0x7f, 0x80, 0xff};
    image file = read_words();
    unsigned passed = 0, refused = 0;
    for (size_t i = 0; i < file.size - 8; i++)
        for (size_t k = 0; k < sizeof values; k++) {
            lnt_lexicon *l;
            lnt_error err = {0};
            const uint8_t before = file.bytes[i];
            file.bytes[i] = values[k];
            repair(&file);
            const lnt_status status = lnt_lexicon_create(file.bytes, file.size, &l, &err);
            assert_true(status == LNT_OK || (status == LNT_E_FILE && *err.message));
            if (status == LNT_OK)
                read_all(l);
            *(status == LNT_OK ? &passed : &refused) += 1;
            lnt_lexicon_destroy(&l);
            file.bytes[i] = before;
        }
    assert_true(passed > 100 && refused > 100);
    free(file.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_endings),
        cmocka_unit_test(texts_and_what_words_do_to_each_other),
        cmocka_unit_test(phonemes_pass_through),
        cmocka_unit_test(senses),
        cmocka_unit_test(every_flipped_bit_and_every_cut_is_refused),
        cmocka_unit_test(damage_with_a_good_hash_is_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
