/* lexicon.h — words to phonemes: entries of a file, endings, and trees for the rest. docs/say.md has the format. */
#ifndef LNT_SPEECH_LEXICON_H
#define LNT_SPEECH_LEXICON_H

#include "speech/letter_to_sound.h"
#include "speech/linnet_voice.h"

/* The name of the attachment that holds one. */
#define LNT_LEXICON_ATTACHMENT "lexicon"

enum { LNT_LEXICON_WORD_MOST = 64 }; /* letters; longer words have no entries and no endings */

/* The parts of a file, which is read where it lies. */
typedef struct lnt_lexicon_file {
    lnt_trees trees;
    const uint8_t *bucket; /* uint32 little-endian [2^log_buckets + 1]: where entries begin, in bits */
    const uint8_t *entry, *rank;
    uint32_t log_buckets, entry_bytes, n_entries;
    uint64_t salt;
    uint16_t first_rank[LNT_LETTERS + 1];
} lnt_lexicon_file;

/* Checks the whole file and sees it part by part; entries and trees are bits that are checked when they are read. */
lnt_status lnt_lexicon_read(const void *data, size_t bytes, lnt_lexicon_file *to, lnt_error *err);

/* Adds the phonemes of a word of small letters and apostrophes. */
void lnt_lexicon_word(const lnt_lexicon_file *f, const char *word, size_t bytes, lnt_phone_list *to);
/* The same if it has an entry, or else false. */
bool lnt_lexicon_entry(const lnt_lexicon_file *f, const char *word, size_t bytes, lnt_phone_list *to);

#endif
