/* resources.c — what the machine has to give: memory, processors. */
#include "runtime/resources.h"

#include "runtime/linnet.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The first number in a small file; false if there is none ("max" counts as none). */
static bool number_in_file(const char *path, uint64_t *out)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    unsigned long long number;
    const bool found = fscanf(f, "%llu", &number) == 1;
    fclose(f);
    if (found)
        *out = number;
    return found;
}

/* MemAvailable in bytes; UINT64_MAX if the system does not tell. */
static uint64_t memory_of_machine(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    if (!f)
        return UINT64_MAX;
    char line[128];
    unsigned long long kib;
    uint64_t bytes = UINT64_MAX;
    while (bytes == UINT64_MAX && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            bytes = (uint64_t)kib * 1024;
    fclose(f);
    return bytes;
}

/* Folder of the group of processes that this one is in, below the hierarchy's own: "" if there is only one.
 * controller is that of an old hierarchy, NULL for the unified one. */
static void own_group(const char *controller, char *group, size_t room)
{
    FILE *f = fopen("/proc/self/cgroup", "re"); /* lines of NUMBER:CONTROLLERS:/FOLDER */
    char line[512];
    group[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (controller ? strstr(list + 1, controller) != NULL : list[1] == '\0')
            snprintf(group, room, "%s", strcmp(path, "/") == 0 ? "" : path);
    }
    if (f)
        fclose(f);
}

/* What a group's limit leaves, or that of one it is within. A container sees its own group as the outermost. */
static uint64_t memory_of_group(const char *hierarchy, char *group, const char *limit_file,
                                const char *used_file)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[640];
        uint64_t limit, used;
        snprintf(path, sizeof path, "%s%s/%s", hierarchy, group, limit_file);
        bool found = number_in_file(path, &limit);
        snprintf(path, sizeof path, "%s%s/%s", hierarchy, group, used_file);
        found = found && number_in_file(path, &used);
        const uint64_t left = !found ? UINT64_MAX : limit > used ? limit - used : 0;
        least = left < least ? left : least;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static uint64_t memory_of_cgroup(void)
{
    char group[512];
    own_group(NULL, group, sizeof group);
    const uint64_t unified = memory_of_group("/sys/fs/cgroup", group, "memory.max", "memory.current");
    own_group("memory", group, sizeof group);
    const uint64_t old =
        memory_of_group("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes");
    return unified < old ? unified : old;
}

static uint64_t memory_of_rlimit(void)
{
    struct rlimit limit;
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    number_in_file("/proc/self/statm", &pages);
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t lnt_available_memory(void)
{
    uint64_t bytes = memory_of_machine();
    const uint64_t cgroup = memory_of_cgroup(), rlimit = memory_of_rlimit();
    bytes = cgroup < bytes ? cgroup : bytes;
    return rlimit < bytes ? rlimit : bytes;
}

/* Whole processors of a cgroup quota; UINT32_MAX if there is none. */
static uint32_t cgroup_processors(void)
{
    unsigned long long quota = 0, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (f) {
        const bool limited = fscanf(f, "%llu %llu", &quota, &period) == 2;
        fclose(f);
        if (!limited)
            return UINT32_MAX;
    } else {
        uint64_t q, p;
        if (!number_in_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &q) ||
            !number_in_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &p) || (int64_t)q <= 0)
            return UINT32_MAX;
        quota = q;
        period = p;
    }
    const unsigned long long whole = period ? quota / period : 0;
    return whole ? (uint32_t)whole : 1;
}

uint32_t lnt_default_threads(void)
{
    cpu_set_t set;
    uint32_t n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = (uint32_t)CPU_COUNT(&set);
    const uint32_t quota = cgroup_processors();
    n = quota < n ? quota : n;
    return n ? n : 1;
}
