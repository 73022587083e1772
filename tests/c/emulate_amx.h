/* emulate_amx.h — the registers of AMX as arrays, so that ops/quant/qgemm_amx.c runs on CPUs without them (make
 * AMX=emulated puts this before its text). What the instructions refuse stops the program here, too.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG, TDPBUSD. */
#ifndef LNT_TESTS_EMULATE_AMX_H
#define LNT_TESTS_EMULATE_AMX_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { EMULATED_TILES = 8, EMULATED_ROWS = 16, EMULATED_ROW_BYTES = 64 };

typedef struct emulated_tile {
    unsigned rows, row_bytes; /* 0: no such register now */
    uint8_t cell[EMULATED_ROWS][EMULATED_ROW_BYTES];
} emulated_tile;

static _Thread_local emulated_tile emulated[EMULATED_TILES];

static void must(int holds)
{
    if (!holds)
        __builtin_trap();
}

static emulated_tile *tile_of(unsigned number)
{
    must(number < EMULATED_TILES && emulated[number].rows > 0);
    return &emulated[number];
}

static void emulate_release(void)
{
    memset(emulated, 0, sizeof emulated);
}

/* config: 64 bytes, palette at 0, bytes of a row from 16 on, rows from 48 on. */
static void emulate_loadconfig(const void *config)
{
    uint8_t bytes[64];
    memcpy(bytes, config, sizeof bytes);
    must(bytes[0] == 1);
    emulate_release();
    for (unsigned i = 0; i < EMULATED_TILES; i++) {
        uint16_t row_bytes;
        memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof row_bytes);
        const unsigned rows = bytes[48 + i];
        must(rows <= EMULATED_ROWS && row_bytes <= EMULATED_ROW_BYTES && (rows == 0) == (row_bytes == 0));
        emulated[i].rows = rows;
        emulated[i].row_bytes = row_bytes;
    }
}

static void emulate_zero(unsigned to)
{
    emulated_tile *t = tile_of(to);
    memset(t->cell, 0, sizeof t->cell);
}

static void emulate_loadd(unsigned to, const void *base, ptrdiff_t step)
{
    emulated_tile *t = tile_of(to);
    emulate_zero(to);
    for (unsigned r = 0; r < t->rows; r++)
        memcpy(t->cell[r], (const char *)base + (ptrdiff_t)r * step, t->row_bytes);
}

static void emulate_stored(unsigned from, void *base, ptrdiff_t step)
{
    const emulated_tile *t = tile_of(from);
    for (unsigned r = 0; r < t->rows; r++)
        memcpy((char *)base + (ptrdiff_t)r * step, t->cell[r], t->row_bytes);
}

/* c[rows][columns] of int32 += a[rows][quads of uint8] * b[quads][columns of four int8], wrapping. */
static void emulate_dpbusd(unsigned sums, unsigned left, unsigned right)
{
    emulated_tile *c = tile_of(sums);
    const emulated_tile *a = tile_of(left), *b = tile_of(right);
    must(sums != left && sums != right && left != right);
    must(c->rows == a->rows && c->row_bytes == b->row_bytes && a->row_bytes == 4 * b->rows &&
         c->row_bytes % 4 == 0);
    for (unsigned r = 0; r < c->rows; r++) {
        uint32_t sum[EMULATED_ROW_BYTES / 4];
        memcpy(sum, c->cell[r], sizeof sum);
        for (unsigned k = 0; k < a->row_bytes; k++)
            for (unsigned n = 0; n < EMULATED_ROW_BYTES / 4; n++)
                sum[n] += (uint32_t)(a->cell[r][k] * (int8_t)b->cell[k / 4][4 * n + k % 4]);
        memcpy(c->cell[r], sum, c->row_bytes);
    }
}

#undef _tile_loadconfig
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbusd
#undef _tile_release
#define _tile_loadconfig emulate_loadconfig
#define _tile_loadd emulate_loadd
#define _tile_stored emulate_stored
#define _tile_zero emulate_zero
#define _tile_dpbusd emulate_dpbusd
#define _tile_release emulate_release

#endif
