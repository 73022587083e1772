/* resources.c — what the machine has to give: time, memory, processors. */
#include "runtime/internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

uint64_t lnt_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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

static uint64_t memory_of_cgroup(void)
{
    static const char *const limit_file[] = {"/sys/fs/cgroup/memory.max",
                                             "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    static const char *const used_file[] = {"/sys/fs/cgroup/memory.current",
                                            "/sys/fs/cgroup/memory/memory.usage_in_bytes"};
    for (unsigned i = 0; i < 2; i++) {
        uint64_t limit, used;
        if (number_in_file(limit_file[i], &limit) && number_in_file(used_file[i], &used))
            return limit > used ? limit - used : 0;
    }
    return UINT64_MAX;
}

static uint64_t memory_of_rlimit(void)
{
    struct rlimit limit;
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    number_in_file("/proc/self/statm", &pages);
    const uint64_t used = pages * 4096;
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
