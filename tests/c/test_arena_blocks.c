/* test_arena_blocks.c — finding room in an arena gives what looking at every block gives. */
#include "runtime/arena_blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static bool is_free(const lnt_arena_block *all, size_t n, const lnt_arena_block *t, bool always)
{
    for (size_t i = 0; i < n; i++)
        if ((always || (all[i].first <= t->last && all[i].last >= t->first)) && all[i].offset < t->end &&
            all[i].end > t->offset)
            return false;
    return true;
}

/* The lowest of offset 0 and the ends of all blocks that is free. */
static size_t lowest(const lnt_arena_block *all, size_t n, lnt_arena_block t, size_t extent, bool always)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i <= n; i++) {
        t.offset = i ? all[i - 1].end : 0;
        t.end = t.offset + extent;
        if (t.offset < best && is_free(all, n, &t, always))
            best = t.offset;
    }
    return best;
}

/* Places of up to `sizes` units that live for up to `life` of `steps` steps. */
static void compare(size_t n, uint32_t steps, uint32_t life, uint32_t sizes, bool always)
{
    enum { UNIT = 64, MOST = 3000 };
    static lnt_arena_block all[MOST];
    lnt_bump memory;
    lnt_arena_blocks blocks;
    uint64_t seed = n + steps + life;
    assert_true(n <= MOST);
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    assert_int_equal(lnt_blocks_make(&blocks, n, &memory, NULL), LNT_OK);
    for (unsigned round = 0; round < 2; round++) { /* cleared, they are as new */
        size_t high = 0;
        lnt_blocks_clear(&blocks);
        for (size_t i = 0; i < n; i++) {
            const uint32_t first = next_random(&seed) % steps;
            lnt_arena_block t = {.first = first, .last = first + next_random(&seed) % life};
            const size_t extent = (1 + next_random(&seed) % sizes) * UNIT;
            t.offset = lnt_blocks_find(&blocks, t.first, t.last, extent, always);
            t.end = t.offset + extent;
            if (i % 7 == 0 || i > n - 20)
                assert_int_equal(t.offset, lowest(all, i, t, extent, always));
            lnt_blocks_add(&blocks, &t);
            all[i] = t;
            high = t.end > high ? t.end : high;
        }
        assert_int_equal(lnt_blocks_high(&blocks), high);
    }
    lnt_bump_free(&memory);
}

static void test_room_is_found_like_by_looking_everywhere(void **state)
{
    (void)state;
    compare(1, 1, 1, 1, false);
    compare(3000, 1000000, 3, 1, false); /* a chain: hardly any meet */
    compare(2000, 10, 1000, 4, false);   /* nearly all live at once */
    compare(3000, 200, 30, 50, false);
    compare(1500, 400, 400, 9, false);
    compare(1200, 9, 9, 9, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_room_is_found_like_by_looking_everywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
