/* A plugin for qemu-aarch64 and qemu-arm: what reads from memory, and writes to it, past two levels of data cache.
 *
 *     qemu-aarch64 -plugin count_bytes.so,out=FILE[,first=KIB][,last=KIB][,mark=NUMBER] PROGRAM ...
 *
 * Both levels let go the line that was used longest ago, of 64 bytes, allocate on writes and write back what leaves
 * them: 32 KiB of 4 ways, and 512 KiB of 16 ways, unless told otherwise. No prefetching, no code, one core. FILE,
 * written at exit, has four numbers: accesses, lines that the first level lacked, lines read from memory, lines written
 * to it. What mark= is for: mark.h; the caches are in use before and after, too. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/arm/mark.h"
#include "tests/bench/arm/qemu_plugin.h"

enum { LINE_SHIFT = 6, FIRST_WAYS = 4, LAST_WAYS = 16 };

/* A line's number, one more than its address over its size so that 0 is none, with the lowest bit for "written to". */
typedef uint64_t entry;

typedef struct {
    entry *entries; /* of each set its ways, the latest used first */
    size_t sets;
    unsigned ways;
} cache;

static cache first, last;
static uint64_t accesses, missed, lines_read, lines_written;

static bool allocate(cache *c, size_t kib, unsigned ways)
{
    *c = (cache){.sets = (kib << 10 >> LINE_SHIFT) / ways, .ways = ways};
    c->entries = c->sets ? calloc(c->sets * ways, sizeof *c->entries) : NULL;
    return c->entries;
}

/* Makes a line the latest used of its set. True if it was there; else *left is the entry that it took the place of. */
static bool touch(cache *c, uint64_t line, bool written, entry *left)
{
    entry *set = c->entries + (line % c->sets) * c->ways;
    unsigned way = 0;
    while (way < c->ways - 1 && set[way] >> 1 != line)
        way++;
    const entry found = set[way];
    const bool hit = found >> 1 == line;
    memmove(set + 1, set, way * sizeof *set);
    set[0] = line << 1 | (entry)written | (hit ? found & 1 : 0);
    *left = hit ? 0 : found;
    return hit;
}

static void touch_last(uint64_t line, bool written)
{
    entry left;
    const bool hit = touch(&last, line, written, &left);
    if (!counting)
        return;
    lines_read += !hit && !written; /* a line that the first level lets go is whole */
    lines_written += left & 1;
}

static void touch_first(uint64_t line, bool written)
{
    entry left;
    if (touch(&first, line, written, &left))
        return;
    missed += counting;
    if (left & 1)
        touch_last(left >> 1, true);
    touch_last(line, false);
}

static void accessed(unsigned thread, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)thread, (void)data;
    const uint64_t end = address + ((uint64_t)1 << qemu_plugin_mem_size_shift(info)) - 1;
    accesses += counting;
    for (uint64_t line = address >> LINE_SHIFT; line <= end >> LINE_SHIFT; line++)
        touch_first(line + 1, qemu_plugin_mem_is_store(info));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), accessed, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
}

static void ended(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    FILE *f = fopen(out, "w");
    if (!f)
        return;
    fprintf(f, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", accesses, missed, lines_read,
            lines_written);
    fclose(f);
}

QEMU_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    const char *first_kib = option_value(argc, argv, "first="), *last_kib = option_value(argc, argv, "last=");
    if (!allocate(&first, first_kib ? (size_t)atoll(first_kib) : 32, FIRST_WAYS) ||
        !allocate(&last, last_kib ? (size_t)atoll(last_kib) : 512, LAST_WAYS))
        return -1;
    read_options(argc, argv);
    count_between_marks(id);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
