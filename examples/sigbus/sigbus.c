/* sigbus.c — a model whose file is cut short while it is mapped: the run ends, its result is thrown away, and
 * the program goes on. sigbus MODEL.lnt: a run for each line of its input. */
#include <fcntl.h>
#include <linnet.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    char *at;
    size_t bytes;
    long page;
    volatile sig_atomic_t lost;
} map;

/* Zeros take the place of the pages that are gone, so that whichever thread read them can go on; what it
 * computes means nothing. mmap is a mere call of the kernel's. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)map.at;
    (void)context;
    if (info->si_code == BUS_ADRERR && at < map.bytes) {
        char *from = map.at + at / (uintptr_t)map.page * (uintptr_t)map.page;
        map.lost = 1;
        const size_t rest = (size_t)(map.at + map.bytes - from);
        if (mmap(from, rest, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == from)
            return;
    }
    signal(number, SIG_DFL); /* not ours: the same instruction ends the program */
}

static int map_file(const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    map.page = sysconf(_SC_PAGESIZE);
    map.bytes = (size_t)st.st_size;
    map.at = mmap(NULL, map.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    const struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    return map.at != MAP_FAILED && sigaction(SIGBUS, &action, NULL) == 0;
}

/* Zeros for every input, open extents 1; they are there for as long as the program runs. */
static lnt_status give_inputs(const lnt_model *model, lnt_session *session, lnt_error *err)
{
    lnt_status status = LNT_OK;
    for (uint32_t i = 0; i < lnt_model_input_count(model) && status == LNT_OK; i++) {
        lnt_value_info info;
        status = lnt_model_input(model, i, &info);
        lnt_tensor t = {.dtype = info.dtype, .rank = info.rank, .bytes = lnt_dtype_size(info.dtype)};
        for (uint32_t k = 0; k < info.rank; k++)
            t.bytes *= (size_t)(t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k]);
        t.data = calloc(t.bytes ? t.bytes : 1, 1);
        if (status == LNT_OK)
            status = t.data ? lnt_set_input(session, i, &t, err) : LNT_E_MEMORY;
    }
    return status;
}

int main(int argc, char **argv)
{
    lnt_model *model = NULL;
    lnt_session *session = NULL;
    lnt_error err = {0};
    char line[64];
    if (argc != 2 || !map_file(argv[1]))
        return fprintf(stderr, "usage: sigbus MODEL.lnt\n"), 2;
    lnt_status status = lnt_model_create_from_memory(map.at, map.bytes, NULL, &model, &err);
    if (status == LNT_OK)
        status = lnt_session_create(model, NULL, &session, &err);
    if (status == LNT_OK)
        status = give_inputs(model, session, &err);
    while (status == LNT_OK && !map.lost && fgets(line, sizeof line, stdin)) {
        status = lnt_run(session, &err);
        if (status == LNT_OK && !map.lost)
            puts("a run");
        fflush(stdout);
    }
    lnt_session_destroy(&session);
    lnt_model_destroy(&model);
    munmap(map.at, map.bytes);
    if (map.lost)
        return fprintf(stderr, "sigbus: %s became shorter: its last result is thrown away\n", argv[1]), 3;
    return status ? fprintf(stderr, "sigbus: %s\n", err.message), 1 : 0;
}
