/* A plugin for QEMU's user-mode emulators: how many instructions ran between marks.
 *
 *     qemu-aarch64 -plugin count_runs.so,out=FILE,mark=NUMBER PROGRAM ...
 *
 * A program of one thread calls the system by the number mark= before and after what is to be counted, as often as it
 * likes. FILE, written at exit, has a line for each such piece: its instructions. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/bench/arm/mark.h"

enum { MOST = 1 << 16 };

static uint64_t counted, pieces[MOST];
static size_t n;
static bool within;

static void marked(qemu_plugin_id_t id, unsigned thread, int64_t number, uint64_t a1, uint64_t a2,
                   uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)thread, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != mark || n == MOST)
        return;
    if (within)
        pieces[n++] = counted;
    within = !within;
    counted = 0;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &counted,
                                             qemu_plugin_tb_n_insns(tb));
}

static void ended(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    FILE *f = fopen(out, "w");
    if (!f)
        return;
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%" PRIu64 "\n", pieces[i]);
    fclose(f);
}

QEMU_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    read_options(argc, argv);
    qemu_plugin_register_vcpu_syscall_cb(id, marked);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
