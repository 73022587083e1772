/* inflate.c — deflated bytes: blocks that are stored, or coded by a fixed or a given pair of Huffman codes. */
#include "formats/inflate.h"

#include <stdbool.h>
#include <string.h>

enum {
    LONGEST = 15,   /* bits of a code word */
    FAST_BITS = 9,  /* of those that a table finds at once */
    LITERALS = 288, /* literals, the end of a block and lengths; two are in the fixed code alone */
    DISTANCES = 30,
    LENGTHS = 29,
    ORDERS = 19, /* words of the code that the lengths of code words are written in */
    END_OF_BLOCK = 256
};

typedef struct stream {
    const uint8_t *at, *end;
    uint64_t held; /* bits taken from there and not used yet, the next one lowest */
    unsigned n_held;
    uint8_t *out;
    size_t written, out_bytes;
} stream;

typedef struct code {
    uint16_t count[LONGEST + 1];   /* words of each length */
    uint16_t symbol[LITERALS];     /* in the order of their words */
    uint16_t fast[1 << FAST_BITS]; /* by the next bits: symbol << 4 | length; 0: the word is longer */
} code;

static void refill(stream *s)
{
    for (; s->n_held <= 56 && s->at < s->end; s->n_held += 8)
        s->held |= (uint64_t)*s->at++ << s->n_held;
}

static void drop(stream *s, unsigned bits)
{
    s->held >>= bits;
    s->n_held -= bits;
}

/* The next bits, up to 16, as a number; false at the end of the stream. */
static bool take(stream *s, unsigned bits, unsigned *value)
{
    refill(s);
    if (s->n_held < bits)
        return false;
    *value = (unsigned)(s->held & ((1u << bits) - 1));
    drop(s, bits);
    return true;
}

/* ---- codes ---- */

static unsigned reversed(unsigned word, unsigned bits)
{
    unsigned turned = 0;
    for (unsigned i = 0; i < bits; i++)
        turned |= (word >> i & 1) << (bits - 1 - i);
    return turned;
}

/* Enters the words in their order into the table. */
static void fill_fast(code *c)
{
    unsigned word = 0, index = 0;
    memset(c->fast, 0, sizeof c->fast);
    for (unsigned length = 1; length <= FAST_BITS; length++, word <<= 1)
        for (unsigned i = 0; i < c->count[length]; i++, word++, index++)
            for (unsigned at = reversed(word, length); at < 1 << FAST_BITS; at += 1u << length)
                c->fast[at] = (uint16_t)(c->symbol[index] << 4 | length);
}

/* The code of n words with these lengths, 0 for symbols without one. False where no code has them: too many words are
 * short, or too few, unless there is at most one. */
static bool make_code(code *c, const uint8_t *length, unsigned n)
{
    uint16_t next[LONGEST + 1] = {0};
    int left = 1;
    memset(c->count, 0, sizeof c->count);
    for (unsigned i = 0; i < n; i++)
        c->count[length[i]]++;
    const unsigned words = n - c->count[0];
    c->count[0] = 0;
    for (unsigned k = 1; k <= LONGEST; k++) {
        left = 2 * left - c->count[k];
        if (left < 0)
            return false;
        next[k] = (uint16_t)(next[k - 1] + c->count[k - 1]);
    }
    for (unsigned i = 0; i < n; i++)
        if (length[i])
            c->symbol[next[length[i]]++] = (uint16_t)i;
    fill_fast(c);
    return left == 0 || words <= 1;
}

/* The next symbol; -1 where no word begins so, or the stream ends. */
static int decode(stream *s, const code *c)
{
    refill(s);
    const unsigned entry = c->fast[s->held & ((1 << FAST_BITS) - 1)];
    if (entry && (entry & 15) <= s->n_held) {
        drop(s, entry & 15);
        return (int)(entry >> 4);
    }
    unsigned word = 0, first = 0, index = 0;
    for (unsigned length = 1; length <= LONGEST && length <= s->n_held; length++) {
        word |= s->held >> (length - 1) & 1;
        if (word - first < c->count[length]) {
            drop(s, length);
            return c->symbol[index + word - first];
        }
        index += c->count[length];
        first = (first + c->count[length]) << 1;
        word <<= 1;
    }
    return -1;
}

/* ---- blocks ---- */

static bool stored_block(stream *s)
{
    unsigned length, inverted;
    drop(s, s->n_held % 8);
    if (!take(s, 16, &length) || !take(s, 16, &inverted) || length != (inverted ^ 0xffff))
        return false;
    s->at -= s->n_held / 8;
    drop(s, s->n_held);
    if (length > (size_t)(s->end - s->at) || length > s->out_bytes - s->written)
        return false;
    if (length)
        memcpy(s->out + s->written, s->at, length);
    s->at += length;
    s->written += length;
    return true;
}

/* Repeats what was written before; symbol: of a length. */
static bool repeat(stream *s, int symbol, const code *distances)
{
    static const uint16_t base[LENGTHS] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                           31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258},
                          from[DISTANCES] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                             33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                             1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t base_bits[LENGTHS] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                               2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    unsigned length, distance;
    symbol -= END_OF_BLOCK + 1;
    if (symbol >= LENGTHS || !take(s, base_bits[symbol], &length))
        return false;
    length += base[symbol];
    const int place = decode(s, distances);
    if (place < 0 || place >= DISTANCES || !take(s, place < 2 ? 0 : (unsigned)place / 2 - 1, &distance))
        return false;
    distance += from[place];
    if (distance > s->written || length > s->out_bytes - s->written)
        return false;
    for (; length; length--, s->written++)
        s->out[s->written] = s->out[s->written - distance];
    return true;
}

static bool coded_block(stream *s, const code *literals, const code *distances)
{
    for (;;) {
        const int symbol = decode(s, literals);
        if (symbol < 0)
            return false;
        if (symbol == END_OF_BLOCK)
            return true;
        if (symbol > END_OF_BLOCK) {
            if (!repeat(s, symbol, distances))
                return false;
        } else if (s->written < s->out_bytes) {
            s->out[s->written++] = (uint8_t)symbol;
        } else {
            return false;
        }
    }
}

static bool fixed_block(stream *s)
{
    code literals, distances;
    uint8_t length[LITERALS];
    memset(length, 8, LITERALS);
    memset(length + 144, 9, 256 - 144);
    memset(length + 256, 7, 280 - 256);
    make_code(&literals, length, LITERALS);
    memset(length, 5, 32);
    make_code(&distances, length, 32);
    return coded_block(s, &literals, &distances);
}

/* The lengths of n code words, written in a code of their own. */
static bool read_lengths(stream *s, const code *written_in, uint8_t *length, unsigned n)
{
    for (unsigned i = 0; i < n;) {
        unsigned times = 1;
        const int symbol = decode(s, written_in);
        if (symbol < 0 || (symbol == 16 && !i))
            return false;
        const uint8_t value = symbol < 16 ? (uint8_t)symbol : symbol == 16 ? length[i - 1] : 0;
        if (symbol >= 16 && !take(s, symbol == 16 ? 2 : symbol == 17 ? 3 : 7, &times))
            return false;
        if (symbol >= 16)
            times += symbol == 18 ? 11 : 3;
        if (times > n - i)
            return false;
        memset(length + i, value, times);
        i += times;
    }
    return true;
}

static bool given_block(stream *s)
{
    static const uint8_t order[ORDERS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    code literals, distances;
    uint8_t length[LITERALS + 32] = {0};
    unsigned n_literals, n_distances, n_order, bits;
    if (!take(s, 5, &n_literals) || !take(s, 5, &n_distances) || !take(s, 4, &n_order))
        return false;
    n_literals += 257;
    n_distances += 1;
    if (n_literals > 286 || n_distances > DISTANCES)
        return false;
    for (unsigned i = 0; i < n_order + 4; i++) {
        if (!take(s, 3, &bits))
            return false;
        length[order[i]] = (uint8_t)bits;
    }
    if (!make_code(&literals, length, ORDERS) ||
        !read_lengths(s, &literals, length, n_literals + n_distances))
        return false;
    return length[END_OF_BLOCK] && make_code(&literals, length, n_literals) &&
           make_code(&distances, length + n_literals, n_distances) && coded_block(s, &literals, &distances);
}

static bool next_block(stream *s, unsigned *last)
{
    unsigned kind;
    if (!take(s, 1, last) || !take(s, 2, &kind))
        return false;
    return kind == 0 ? stored_block(s) : kind == 1 ? fixed_block(s) : kind == 2 && given_block(s);
}

lnt_status lnt_inflate(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes, lnt_error *err)
{
    stream s = {.at = in, .end = in + in_bytes, .out = out, .out_bytes = out_bytes};
    for (unsigned last = 0; !last;)
        LNT_REQUIRE(next_block(&s, &last), err, LNT_E_FILE, "compressed bytes are damaged after %zu of %zu",
                    s.written, out_bytes);
    LNT_REQUIRE(s.written == out_bytes, err, LNT_E_FILE, "compressed bytes give %zu bytes, not %zu",
                s.written, out_bytes);
    return LNT_OK;
}
