/* windows_posix.c — what Linnet uses of POSIX, made of what Windows has. */
#include "fnmatch.h"
#include "windows_posix.h"
#include "sys/mman.h"
#include "sys/resource.h"

#include <errno.h>
#include <stdarg.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <psapi.h>
#undef open
#undef fopen
#undef fclose

enum { MOST = 1 << 30 }; /* bytes of one call */

/* ---- memory ---- */

int lnt_windows_align(void **block, size_t align, size_t bytes)
{
    *block = _aligned_malloc(bytes, align);
    return *block ? 0 : ENOMEM;
}

void *lnt_windows_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    (void)at, (void)protection, (void)flags;
    const uint64_t from = (uint64_t)offset;
    const HANDLE mapping = CreateFileMappingA((HANDLE)_get_osfhandle(fd), NULL, PAGE_READONLY, 0, 0, NULL);
    void *bytes = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, (DWORD)(from >> 32), (DWORD)from, size) : NULL;
    if (mapping)
        CloseHandle(mapping); /* the view holds it */
    errno = bytes ? 0 : ENOMEM;
    return bytes ? bytes : MAP_FAILED;
}

int lnt_windows_munmap(void *bytes, size_t size)
{
    (void)size;
    return UnmapViewOfFile(bytes) ? 0 : -1;
}

/* ---- files ---- */

/* The program itself goes by Linux's name. */
static const char *named(const char *path, char *room)
{
    if (strcmp(path, "/proc/self/exe") != 0)
        return path;
    return GetModuleFileNameA(NULL, room, MAX_PATH) ? room : path;
}

int lnt_windows_open(const char *path, int flags, ...)
{
    char own[MAX_PATH + 1] = {0};
    if (flags & O_DIRECTORY) {
        errno = EISDIR;
        return -1;
    }
    return open(named(path, own), flags | _O_BINARY, 0666);
}

ssize_t lnt_windows_pread(int fd, void *bytes, size_t size, off_t offset)
{
    const uint64_t from = (uint64_t)offset;
    OVERLAPPED at = {.Offset = (DWORD)from, .OffsetHigh = (DWORD)(from >> 32)};
    DWORD got = 0;
    if (!ReadFile((HANDLE)_get_osfhandle(fd), bytes, size < MOST ? (DWORD)size : MOST, &got, &at) &&
        GetLastError() != ERROR_HANDLE_EOF) {
        errno = EIO;
        return -1;
    }
    return (ssize_t)got;
}

ssize_t lnt_windows_read(int fd, void *bytes, size_t size)
{
    return _read(fd, bytes, size < MOST ? (unsigned)size : MOST);
}

ssize_t lnt_windows_write(int fd, const void *bytes, size_t size)
{
    return _write(fd, bytes, size < MOST ? (unsigned)size : MOST);
}

int lnt_windows_rename(const char *from, const char *to)
{
    if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        return 0;
    errno = GetLastError() == ERROR_FILE_NOT_FOUND ? ENOENT : EACCES;
    return -1;
}

/* As / separates folders everywhere else; NULL where there is nothing of that name. */
char *lnt_windows_realpath(const char *path, char *room)
{
    (void)room;
    char *whole = _access(path, 0) == 0 ? _fullpath(NULL, path, 0) : NULL;
    for (char *c = whole; c && *c; c++)
        if (*c == '\\')
            *c = '/';
    return whole;
}

static bool describe(const char *path, BY_HANDLE_FILE_INFORMATION *info)
{
    enum { SHARED = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };
    const HANDLE file = CreateFileA(path, 0, SHARED, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    const bool found = file != INVALID_HANDLE_VALUE && GetFileInformationByHandle(file, info);
    if (file != INVALID_HANDLE_VALUE)
        CloseHandle(file);
    return found;
}

bool lnt_windows_same_file(const char *a, const char *b)
{
    BY_HANDLE_FILE_INFORMATION one, other;
    return describe(a, &one) && describe(b, &other) && one.dwVolumeSerialNumber == other.dwVolumeSerialNumber &&
           one.nFileIndexHigh == other.nFileIndexHigh && one.nFileIndexLow == other.nFileIndexLow;
}

int lnt_windows_kill(int pid, int number)
{
    (void)number;
    const HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)pid);
    if (process)
        CloseHandle(process);
    errno = ESRCH;
    return process ? 0 : -1;
}

/* ---- streams ---- */

FILE *lnt_windows_fopen(const char *path, const char *mode)
{
    char plain[8] = {0};
    size_t n = 0;
    for (const char *c = mode; *c && n < sizeof plain - 2; c++)
        if (*c != 'e' && *c != 'b')
            plain[n++] = *c;
    plain[n] = 'b';
    return fopen(path, plain);
}

/* Streams into memory that are open: few, in one thread. */
typedef struct memory_stream {
    FILE *file;
    void *cookie;
    cookie_io_functions_t functions;
    char **text;
    size_t *bytes;
} memory_stream;

static memory_stream open_streams[8];

static FILE *remember(memory_stream s)
{
    char folder[MAX_PATH + 1], path[MAX_PATH + 1];
    for (size_t i = 0; i < sizeof open_streams / sizeof *open_streams; i++) {
        if (open_streams[i].file)
            continue;
        if (!GetTempPathA(sizeof folder, folder) || !GetTempFileNameA(folder, "lnt", 0, path))
            return NULL;
        s.file = fopen(path, "w+bTD"); /* removed when it is closed */
        open_streams[i] = s;
        return s.file;
    }
    errno = EMFILE;
    return NULL;
}

FILE *lnt_windows_cookie(void *cookie, const char *mode, cookie_io_functions_t functions)
{
    (void)mode;
    return remember((memory_stream){.cookie = cookie, .functions = functions});
}

FILE *lnt_windows_memory_stream(char **text, size_t *bytes)
{
    return remember((memory_stream){.text = text, .bytes = bytes});
}

/* What was written, with a zero behind it; NULL where it cannot be read. */
static char *contents(FILE *f, size_t *bytes)
{
    const long long end = fflush(f) == 0 && _fseeki64(f, 0, SEEK_END) == 0 ? _ftelli64(f) : -1;
    char *text = end >= 0 && _fseeki64(f, 0, SEEK_SET) == 0 ? malloc((size_t)end + 1) : NULL;
    if (!text || fread(text, 1, (size_t)end, f) != (size_t)end) {
        free(text);
        return NULL;
    }
    text[end] = '\0';
    *bytes = (size_t)end;
    return text;
}

int lnt_windows_fclose(FILE *f)
{
    memory_stream *s = NULL;
    for (size_t i = 0; f && i < sizeof open_streams / sizeof *open_streams; i++)
        if (open_streams[i].file == f)
            s = &open_streams[i];
    if (!s)
        return fclose(f);
    size_t bytes = 0;
    char *text = contents(f, &bytes);
    bool whole = fclose(f) == 0 && text;
    if (s->text) {
        *s->text = text;
        *s->bytes = bytes;
    } else {
        whole = whole && s->functions.write(s->cookie, text, bytes) == (ssize_t)bytes;
        free(text);
    }
    *s = (memory_stream){0};
    return whole ? 0 : EOF;
}

/* ---- names ---- */

/* Of a set behind its [: is c of it? *end: behind its ], NULL where it has none. */
static bool in_set(const char *set, char c, const char **end)
{
    const bool not = *set == '!' || *set == '^';
    bool found = false;
    const char *at = set + not;
    do {
        if (!*at) {
            *end = NULL;
            return false;
        }
        const bool range = at[1] == '-' && at[2] && at[2] != ']';
        found |= range ? *at <= c && c <= at[2] : *at == c;
        at += range ? 3 : 1;
    } while (*at != ']');
    *end = at + 1;
    return found != not;
}

int lnt_windows_fnmatch(const char *pattern, const char *name, int flags)
{
    for (; *pattern; pattern++, name++) {
        const char *end = NULL;
        if (*pattern == '*') {
            for (const char *from = name;; from++) {
                if (lnt_windows_fnmatch(pattern + 1, from, flags) == 0)
                    return 0;
                if (!*from)
                    return 1;
            }
        }
        if (!*name)
            return 1;
        if (*pattern == '[') {
            const bool found = in_set(pattern + 1, *name, &end);
            if (end && !found)
                return 1;
            if (end) {
                pattern = end - 1;
                continue;
            }
        }
        if (*pattern == '\\' && pattern[1])
            pattern++;
        else if (*pattern == '?')
            continue;
        if (*pattern != *name)
            return 1;
    }
    return *name != '\0';
}

/* ---- the machine ---- */

int lnt_windows_affinity(int pid, size_t bytes, cpu_set_t *set)
{
    (void)pid, (void)bytes;
    DWORD_PTR own, all;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
        return -1;
    set->bits = own;
    return 0;
}

long lnt_windows_sysconf(int name)
{
    (void)name;
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (long)info.dwPageSize;
}

int lnt_windows_usage(int who, struct rusage *usage)
{
    (void)who;
    PROCESS_MEMORY_COUNTERS counters;
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters))
        return -1;
    usage->ru_maxrss = (long)(counters.PeakWorkingSetSize / 1024);
    return 0;
}

/* Bytes that are written to standard output are those that arrive. */
__attribute__((constructor)) static void binary_streams(void)
{
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
}
