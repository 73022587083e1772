/* resources.h — what the machine has to give. */
#ifndef LNT_RUNTIME_RESOURCES_H
#define LNT_RUNTIME_RESOURCES_H

#include <stdint.h>

/* Bytes this process may still take: free memory, cgroup, rlimit. */
uint64_t lnt_available_memory(void);

#endif
