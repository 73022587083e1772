/* letter_to_sound.h — decision trees from letters to phonemes: one for each letter, in bytes that may hold anything.
 *
 * A leaf is 128 + a class. A question is 4 * feature, + 1 if its values are a mask and not a single one, + 2 if the
 * distance has two bytes; then the value or the mask; then how many bytes the tree for yes has, behind which is that
 * for no; then the tree for yes. So a walk only goes forward. */
#ifndef LNT_SPEECH_LETTER_TO_SOUND_H
#define LNT_SPEECH_LETTER_TO_SOUND_H

#include "speech/phones.h"

enum {
    LNT_LETTERS = 27, /* the apostrophe, then a to z */
    LNT_SOUNDS_AROUND = 4
};

typedef struct lnt_trees {
    const uint8_t *node;
    uint32_t bytes;
    uint32_t root[LNT_LETTERS];
    const uint8_t (*sounds)[2]; /* of each class: none, one or two phonemes, 0 behind them */
    uint32_t n_classes;
} lnt_trees;

/* On the way through a word, from its first letter to the last. */
typedef struct lnt_letter_walk {
    const char *word; /* small letters and apostrophes */
    size_t n, at;
    size_t vowels, to_come;      /* vowels so far; groups of vowel letters that begin behind this letter */
    uint8_t phone[3], stress[2]; /* the last ones, nearest first; 0: none, else 1 + number or stress */
    bool primary;
} lnt_letter_walk;

/* Number of the letter, from 0; -1: it is none. */
int lnt_letter_number(char c);

lnt_letter_walk lnt_letter_walk_begin(const char *word, size_t bytes);
/* The class that the present letter's tree has for what is around it; -1: the tree is damaged. */
int lnt_letter_class(const lnt_trees *trees, const lnt_letter_walk *walk);
/* Goes on behind the present letter, which sounds like class number c, and adds its phonemes. */
void lnt_letter_take(const lnt_trees *trees, lnt_letter_walk *walk, unsigned c, lnt_phone_list *to);

#endif
