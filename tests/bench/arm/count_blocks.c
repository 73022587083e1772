/* A plugin for qemu-aarch64 and qemu-arm: which blocks of instructions ran, how often, and after which other block.
 *
 *     qemu-aarch64 -plugin count_blocks.so,out=FILE[,mark=NUMBER] PROGRAM ...
 *
 * What mark= is for: mark.h.
 * A block is what QEMU translates at once: straight code up to a branch, the end of a page or a limit of its own. FILE,
 * written at exit, has a line for each block that ran:
 *
 *     NUMBER ADDRESS COUNT INSTRUCTION,INSTRUCTION,... NUMBER:COUNT,NUMBER:COUNT,...
 *
 * Addresses and instructions in hexadecimal, these as the bytes in memory (4 or, in Thumb code, 2); last the blocks
 * before it, at most EDGES, with how often each was that. What translation meets again, and threads, count together. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/arm/mark.h"
#include "tests/bench/arm/qemu_plugin.h"

enum { BUCKETS = 1 << 16, EDGES = 8, THREADS = 64, LONGEST = 4096 };

typedef struct block block;

typedef struct {
    const block *from;
    uint64_t count;
} edge;

struct block {
    block *next; /* of its bucket */
    uint64_t number, address, count;
    edge before[EDGES];
    size_t instructions, bytes;
    uint8_t sizes[LONGEST]; /* of each instruction, allocated to their number, then their bytes */
};

static block *buckets[BUCKETS];
static const block *last[THREADS];
static uint64_t blocks;

static void executed(unsigned thread, void *data)
{
    if (!counting)
        return;
    block *b = data;
    const block *from = last[thread % THREADS];
    last[thread % THREADS] = b;
    b->count++;
    for (edge *e = b->before; e < b->before + EDGES; e++)
        if (e->from == from || !e->from) {
            e->from = from;
            e->count++;
            return;
        }
}

/* The code of a translated block: its instructions' sizes and bytes, one after another. */
static size_t read_code(const struct qemu_plugin_tb *tb, size_t n, uint8_t sizes[LONGEST],
                        uint8_t code[4 * LONGEST])
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        sizes[i] = (uint8_t)qemu_plugin_insn_size(insn);
        memcpy(code + bytes, qemu_plugin_insn_data(insn), sizes[i]);
        bytes += sizes[i];
    }
    return bytes;
}

/* NULL where there is no memory: the block is not counted then. */
static block *known(uint64_t address, size_t n, const uint8_t *sizes, const uint8_t *code, size_t bytes)
{
    block **bucket = &buckets[(address >> 1) % BUCKETS];
    for (block *b = *bucket; b; b = b->next)
        if (b->address == address && b->instructions == n && b->bytes == bytes &&
            !memcmp(b->sizes + n, code, bytes))
            return b;
    block *b = calloc(1, offsetof(block, sizes) + n + bytes);
    if (!b)
        return NULL;
    b->number = ++blocks;
    b->address = address;
    b->instructions = n;
    b->bytes = bytes;
    memcpy(b->sizes, sizes, n);
    memcpy(b->sizes + n, code, bytes);
    b->next = *bucket;
    return *bucket = b;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    static _Thread_local uint8_t sizes[LONGEST], code[4 * LONGEST];
    const size_t n = qemu_plugin_tb_n_insns(tb);
    if (n > LONGEST)
        return;
    const size_t bytes = read_code(tb, n, sizes, code);
    block *b = known(qemu_plugin_tb_vaddr(tb), n, sizes, code, bytes);
    if (b)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, b);
}

static void print_block(FILE *f, const block *b)
{
    fprintf(f, "%" PRIu64 " %" PRIx64 " %" PRIu64 " ", b->number, b->address, b->count);
    const uint8_t *code = b->sizes + b->instructions;
    for (size_t i = 0; i < b->instructions; i++) {
        if (i)
            fputc(',', f);
        for (size_t k = 0; k < b->sizes[i]; k++)
            fprintf(f, "%02x", *code++);
    }
    fputc(' ', f);
    for (const edge *e = b->before; e < b->before + EDGES && e->count; e++)
        fprintf(f, "%s%" PRIu64 ":%" PRIu64, e > b->before ? "," : "", e->from ? e->from->number : 0,
                e->count);
    fputc('\n', f);
}

static void ended(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    FILE *f = fopen(out, "w");
    if (!f)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (const block *b = buckets[i]; b; b = b->next)
            if (b->count)
                print_block(f, b);
    fclose(f);
}

QEMU_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    read_options(argc, argv);
    count_between_marks(id);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
