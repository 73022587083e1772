/* amx.h — GCC 12 hands a tile's stride to its instruction as long, which has 32 bits on Windows. */
#include <immintrin.h>

#undef _tile_loadd_internal
#define _tile_loadd_internal(to, base, stride)                         \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #to                  \
                     :                                                 \
                     : "r"((const void *)(base)), "r"((long long)(stride)))
#undef _tile_stored_internal
#define _tile_stored_internal(from, base, stride)                      \
    __asm__ volatile("tilestored %%tmm" #from ", (%0,%1,1)"            \
                     :                                                 \
                     : "r"((void *)(base)), "r"((long long)(stride))   \
                     : "memory")
