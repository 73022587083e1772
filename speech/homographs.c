/* homographs.c — words that sound otherwise where they are another part of speech. A rule looks at the words before and
 * behind, no further: where they say nothing the more frequent one of the two is taken. */
#include "speech/homographs.h"

#include <string.h>

typedef enum sense_rule {
    VERB, /* behind "to", an auxiliary, a pronoun; before a determiner where a clause begins: "Record the song" */
    USE,   /* a noun behind a determiner or a preposition, else a verb */
    READ,  /* the past behind a form of "have" or "be" */
    LIVE,  /* a verb as above, or in front of a preposition of place */
    LIVES, /* a verb behind a pronoun, or in front of such a preposition */
    CLOSE, /* an adjective in front of "to", or behind a form of "be" or an adverb of degree */
    WIND   /* a verb in front of "up" and "down" */
} sense_rule;

static const struct {
    const char *word, *usual, *other; /* other: where the rule says so; NULL: nowhere */
    sense_rule rule;
} homographs[] = {
    /* clang-format off */
    {"read", "R IY1 D", "R EH1 D", READ}, {"live", "L AY1 V", "L IH1 V", LIVE}, {"lives", "L AY1 V Z", "L IH1 V Z", LIVES},
    {"use", "Y UW1 Z", "Y UW1 S", USE}, {"uses", "Y UW1 Z AH0 Z", "Y UW1 S AH0 Z", USE}, {"abuse", "AH0 B Y UW1 Z", "AH0 B Y UW1 S", USE},
    {"excuse", "IH0 K S K Y UW1 Z", "IH0 K S K Y UW1 S", USE}, {"misuse", "M IH0 S Y UW1 Z", "M IH0 S Y UW1 S", USE},
    {"close", "K L OW1 Z", "K L OW1 S", CLOSE}, {"wind", "W IH1 N D", "W AY1 N D", WIND}, {"lead", "L IY1 D", NULL, VERB},
    {"tear", "T IH1 R", "T EH1 R", VERB}, {"refuse", "R IH0 F Y UW1 Z", NULL, VERB}, {"wound", "W UW1 N D", NULL, VERB},
    {"invalid", "IH2 N V AE1 L AH0 D", NULL, VERB},
    {"address", "AE1 D R EH2 S", "AH0 D R EH1 S", VERB}, {"alternate", "AO1 L T ER0 N AH0 T", "AO1 L T ER0 N EY2 T", VERB},
    {"attribute", "AE1 T R AH0 B Y UW2 T", "AH0 T R IH1 B Y UW2 T", VERB}, {"combine", "K AH0 M B AY1 N", NULL, VERB},
    {"compact", "K AA1 M P AE0 K T", "K AH0 M P AE1 K T", VERB}, {"compound", "K AA1 M P AW0 N D", "K AH0 M P AW1 N D", VERB},
    {"compress", "K AH0 M P R EH1 S", NULL, VERB}, {"conduct", "K AA1 N D AH0 K T", "K AH0 N D AH1 K T", VERB},
    {"conflict", "K AA1 N F L IH0 K T", "K AH0 N F L IH1 K T", VERB}, {"console", "K AA1 N S OW0 L", "K AH0 N S OW1 L", VERB},
    {"contract", "K AA1 N T R AE2 K T", "K AH0 N T R AE1 K T", VERB}, {"contrast", "K AA1 N T R AE0 S T", "K AH0 N T R AE1 S T", VERB},
    {"convert", "K AH0 N V ER1 T", NULL, VERB}, {"decrease", "D IY1 K R IY2 S", "D IH0 K R IY1 S", VERB},
    {"deliberate", "D IH0 L IH1 B ER0 AH0 T", "D IH0 L IH1 B ER0 EY2 T", VERB}, {"desert", "D EH1 Z ER0 T", "D IH0 Z ER1 T", VERB},
    {"duplicate", "D UW1 P L AH0 K AH0 T", "D UW1 P L AH0 K EY2 T", VERB}, {"estimate", "EH1 S T AH0 M AH0 T", "EH1 S T AH0 M EY2 T", VERB},
    {"export", "EH1 K S P AO0 R T", "IH0 K S P AO1 R T", VERB}, {"extract", "EH1 K S T R AE2 K T", "IH0 K S T R AE1 K T", VERB},
    {"graduate", "G R AE1 JH AH0 W AH0 T", "G R AE1 JH AH0 W EY2 T", VERB}, {"import", "IH1 M P AO2 R T", "IH2 M P AO1 R T", VERB},
    {"increase", "IH1 N K R IY2 S", "IH2 N K R IY1 S", VERB}, {"insert", "IH1 N S ER2 T", "IH2 N S ER1 T", VERB},
    {"moderate", "M AA1 D ER0 AH0 T", "M AA1 D ER0 EY2 T", VERB}, {"object", "AA1 B JH EH0 K T", "AH0 B JH EH1 K T", VERB},
    {"perfect", "P ER1 F IH2 K T", "P ER0 F EH1 K T", VERB}, {"permit", "P ER1 M IH2 T", "P ER0 M IH1 T", VERB},
    {"present", "P R EH1 Z AH0 N T", "P R IY0 Z EH1 N T", VERB}, {"progress", "P R AA1 G R EH2 S", "P R AH0 G R EH1 S", VERB},
    {"project", "P R AA1 JH EH0 K T", "P R AH0 JH EH1 K T", VERB}, {"protest", "P R OW1 T EH2 S T", "P R AH0 T EH1 S T", VERB},
    {"record", "R EH1 K ER0 D", "R IH0 K AO1 R D", VERB}, {"refund", "R IY1 F AH2 N D", "R IH0 F AH1 N D", VERB},
    {"reject", "R IH0 JH EH1 K T", NULL, VERB}, {"separate", "S EH1 P ER0 IH0 T", "S EH1 P ER0 EY2 T", VERB},
    {"subject", "S AH1 B JH IH0 K T", "S AH0 B JH EH1 K T", VERB}, {"survey", "S ER1 V EY2", "S ER0 V EY1", VERB},
    {"suspect", "S AH1 S P EH2 K T", "S AH0 S P EH1 K T", VERB}, {"transfer", "T R AE1 N S F ER0", "T R AE0 N S F ER1", VERB},
    {"transport", "T R AE1 N S P AO0 R T", "T R AE0 N S P AO1 R T", VERB}, {"update", "AH1 P D EY2 T", "AH0 P D EY1 T", VERB},
    {"upgrade", "AH1 P G R EY2 D", "AH0 P G R EY1 D", VERB},
    /* clang-format on */
};

/* Is it one of the words, which have blanks around them? */
static bool is_of(const lnt_word *w, const char *words)
{
    for (const char *at = words; w->bytes && (at = strchr(at, ' ')) != NULL && at[1];)
        if (strncmp(++at, w->text, w->bytes) == 0 && at[w->bytes] == ' ')
            return true;
    return false;
}

/* The word before it in its clause is one of these. */
static bool is_behind(const lnt_word *w, const char *words)
{
    return !w[-1].mark && is_of(w - 1, words);
}

static bool is_before(const lnt_word *w, const char *words)
{
    return !w->mark && is_of(w + 1, words);
}

static bool begins_clause(const lnt_word *w)
{
    return !w[-1].bytes || w[-1].mark || is_of(w - 1, " please and then ");
}

static bool is_verb(const lnt_word *w)
{
    return is_behind(w, " to will would can could shall should may might must do does did don't doesn't "
                        "didn't can't won't "
                        "cannot couldn't wouldn't shouldn't please i we you they who let's not i'll we'll "
                        "you'll they'll ") ||
           (begins_clause(w) &&
            is_before(w,
                      " the a an your my our their his her this that these those all it them each every "));
}

static bool is_other(const lnt_word *w, sense_rule rule)
{
    static const char at_places[] = " in at on with near here there together alone inside outside ";
    switch (rule) {
    case VERB: return is_verb(w);
    case USE:
        return is_behind(
            w, " the a an of in for no its their your my our his her this that any some more less much first "
               "from by with frequent current drug substance fuel energy power ");
    case READ:
        return is_behind(
            w, " have has had having been was were be is are get got already i've we've you've they've not ");
    case LIVE: return is_verb(w) || is_before(w, at_places);
    case LIVES: return is_behind(w, " he she it who that which one ") || is_before(w, at_places);
    case CLOSE:
        return is_before(w, " to enough ") ||
               is_behind(w, " is are was were so too very be been how as get got stay came come ");
    case WIND: return is_before(w, " up down ");
    }
    return false;
}

const char *lnt_homograph(const lnt_word *w)
{
    for (size_t i = 0; i < sizeof homographs / sizeof *homographs; i++)
        if (strlen(homographs[i].word) == w->bytes && memcmp(homographs[i].word, w->text, w->bytes) == 0)
            return homographs[i].other && is_other(w, homographs[i].rule) ? homographs[i].other
                                                                          : homographs[i].usual;
    return NULL;
}
