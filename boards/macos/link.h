/* link.h — what is loaded is not counted here. */
#ifndef LNT_MACOS_LINK_H
#define LNT_MACOS_LINK_H

#include <stddef.h>
#include <stdint.h>

#define PT_LOAD 1
typedef struct {
    uint32_t p_type;
    uint64_t p_filesz;
} lnt_segment;
#define ElfW(type) lnt_segment
struct dl_phdr_info {
    const char *dlpi_name;
    const lnt_segment *dlpi_phdr;
    uint16_t dlpi_phnum;
};
#define dl_iterate_phdr(each, data) ((void)(each), (void)(data))

#endif
