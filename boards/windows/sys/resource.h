/* resource.h — the memory that this process has taken; there are no limits on it. */
#ifndef LNT_WINDOWS_RESOURCE_H
#define LNT_WINDOWS_RESOURCE_H

#include <stdint.h>

enum { RUSAGE_SELF, RLIMIT_AS };
#define RLIM_INFINITY UINT64_MAX

struct rusage {
    long ru_maxrss; /* KB */
};
struct rlimit {
    uint64_t rlim_cur;
};
int lnt_windows_usage(int who, struct rusage *usage);
#define getrusage lnt_windows_usage
#define getrlimit(what, limit) ((void)(what), (limit)->rlim_cur = RLIM_INFINITY, 0)

#endif
