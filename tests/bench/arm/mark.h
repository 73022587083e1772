/* Options that the plugins of this folder share: out=FILE, and mark=NUMBER, by which a program says what is to be
 * counted: from its first call of the system by that number to the second, without it everything; or between any two
 * calls of the plugin's own reading (count_runs.c). */
#ifndef LNT_MARK_H
#define LNT_MARK_H

#include <stdlib.h>
#include <string.h>

#include "tests/bench/arm/qemu_plugin.h"

static const char *out = "counted.txt";
static bool counting = true;
static int64_t mark = -1;
static bool over;

static inline void called(qemu_plugin_id_t id, unsigned thread, int64_t number, uint64_t a1, uint64_t a2,
                          uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)thread, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != mark || over)
        return;
    over = counting;
    counting = !counting;
}

/* The value of an option NAME=VALUE, name with its sign; NULL if it is another option or not given. */
static inline const char *option_value(int argc, char **argv, const char *name)
{
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], name, strlen(name)))
            return argv[i] + strlen(name);
    return NULL;
}

static inline void read_options(int argc, char **argv)
{
    const char *file = option_value(argc, argv, "out="), *number = option_value(argc, argv, "mark=");
    if (file)
        out = strdup(file);
    if (number)
        mark = atoll(number);
}

static inline void count_between_marks(qemu_plugin_id_t id)
{
    if (mark < 0)
        return;
    counting = false;
    qemu_plugin_register_vcpu_syscall_cb(id, called);
}

#endif
