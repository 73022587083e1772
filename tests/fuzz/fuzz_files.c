/* fuzz_files.c — whatever else is read from files. The first bytes tell what they are: .npy, .npz, .wav (by the
 * program's own reader), a bundle or a model; anything else is tried as a .pb and as a table of costs.
 *
 * What is read can be read to its end. Of a model `linnet info --json` is asked, and must answer in JSON
 * whatever the model's names are. */
#include "cli/data/audio.h"
#include "cli/verbs.h"
#include "formats/costs.h"
#include "formats/lnt_file.h"
#include "formats/tensor_file.h"
#include "formats/tensor_list.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json_check.h"

#include <sys/mman.h>
#include <unistd.h>

static const lnt_allocator *const memory = &lnt_malloc_allocator;

/* A file of this name holds the input, without being written to a disk. */
static struct {
    const uint8_t *bytes;
    size_t size;
} input;

lnt_status __wrap_lnt_blob_open(const char *path, bool copy, const lnt_allocator *a, lnt_blob *out,
                                lnt_error *err);
lnt_status __real_lnt_blob_open(const char *path, bool copy, const lnt_allocator *a, lnt_blob *out,
                                lnt_error *err);
uint64_t __wrap_lnt_available_memory(void);

lnt_status __wrap_lnt_blob_open(const char *path, bool copy, const lnt_allocator *a, lnt_blob *out,
                                lnt_error *err)
{
    if (strncmp(path, "input.", 6) != 0)
        return __real_lnt_blob_open(path, copy, a, out, err);
    *out = (lnt_blob){fuzz_copy(input.bytes, input.size), input.size, memory};
    return LNT_OK;
}

/* In place of what the machine has free. */
uint64_t __wrap_lnt_available_memory(void)
{
    return (uint64_t)4 << 20;
}

static void look(lnt_status status, lnt_tensor *t, const lnt_error *err)
{
    fuzz_judge(status, err);
    if (status != LNT_OK)
        return;
    fuzz_read(t);
    lnt_tensor_free(memory, t);
}

static void read_npz(void)
{
    static const char *const members[] = {NULL, "x", "input_0"};
    for (unsigned i = 0; i < sizeof members / sizeof *members; i++) {
        lnt_tensor t = {0};
        lnt_error err = {0};
        look(lnt_tensor_parse_npz(input.bytes, input.size, members[i], memory, &t, &err), &t, &err);
    }
}

static void read_npy(void)
{
    lnt_tensor t = {0};
    lnt_error err = {0};
    look(lnt_tensor_parse_npy(input.bytes, input.size, memory, &t, &err), &t, &err);
}

static void read_pb(void)
{
    lnt_tensor t = {0};
    lnt_error err = {0};
    char name[32];
    look(lnt_tensor_parse_pb(input.bytes, input.size, memory, &t, name, sizeof name, &err), &t, &err);
    lnt_tensor_list list;
    lnt_wire part;
    fuzz_judge(lnt_tensor_list_open(input.bytes, input.size, &list, &err), &err);
    while (lnt_tensor_list_next(&list, &part)) {
        t = (lnt_tensor){0};
        err = (lnt_error){0};
        look(lnt_tensor_parse_pb(part.at, lnt_wire_bytes(part), memory, &t, NULL, 0, &err), &t, &err);
    }
}

static void read_sound(void)
{
    lnt_sound sound = {0};
    lnt_error err = {0};
    const lnt_status status = lnt_sound_read("input.wav", 0, &sound, &err);
    fuzz_judge(status, &err);
    lnt_tensor t = {.dtype = LNT_FLOAT, .data = sound.samples, .bytes = sound.n * sizeof *sound.samples};
    if (status == LNT_OK)
        fuzz_read(&t);
    lnt_free(memory, sound.samples);
}

/* A table that is taken gives times that are numbers. */
static void read_costs(void)
{
    lnt_costs costs;
    lnt_error err = {0};
    char *text = malloc(input.size + 1);
    if (!text)
        fuzz_fail("out of memory");
    memcpy(text, input.bytes, input.size);
    text[input.size] = '\0';
    const lnt_status status = lnt_costs_parse(text, &costs, &err);
    fuzz_judge(status, &err);
    if (status == LNT_OK && !(lnt_costs_grain_percent(&costs) > 0 && lnt_costs_float_us(&costs, 1e6, 1e4) >= 0 &&
                              lnt_costs_int8_us(&costs, 1e6, 1e4, 1e3) >= 0))
        fuzz_fail("a table of costs without times");
    free(text);
}

/* Where the model of a bundle is said to lie is read from a file of the system's. */
static void read_bundle(void)
{
    static int file = -1;
    static char path[32];
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, input.bytes, input.size, 0) != (ssize_t)input.size)
        fuzz_fail("no file in memory");
    for (unsigned copy = 0; copy < 2; copy++) {
        lnt_blob blob = {0};
        lnt_error err = {0};
        const lnt_status status = lnt_blob_open(path, copy, memory, &blob, &err);
        fuzz_judge(status, &err);
        if (status == LNT_OK) {
            const lnt_tensor t = {.data = (void *)(uintptr_t)blob.bytes, .bytes = blob.size};
            fuzz_read(&t);
            lnt_blob_close(&blob);
        }
    }
    (void)lnt_blob_is_bundle(path);
}

/* `linnet info --json`, its standard output kept in memory; the program speaks JSON only when it succeeds. */
static void show_model(uint8_t *model)
{
    static char json[] = "--json", path[] = "input.lnt";
    char *words[] = {json, path};
    lnt_texts paths = {0};
    lnt_error err = {0};
    int code = LNT_EXIT_OK;
    char *text = NULL;
    size_t length = 0;
    FILE *const screen = stdout;
    if (lnt_file_rehash(model, input.size, &err) != LNT_OK)
        return;
    input.bytes = model;
    stdout = open_memstream(&text, &length);
    if (!stdout)
        fuzz_fail("out of memory");
    if (lnt_args_parse(&lnt_verb_info, 2, words, &paths, &code))
        code = lnt_verb_info.run(&paths);
    fclose(stdout);
    stdout = screen;
    lnt_cli_free();
    if (code == LNT_EXIT_OK && (strlen(text) != length || !is_json(text)))
        fuzz_fail("what is printed is no JSON");
    free(text);
}

static bool starts(const char *magic)
{
    return input.size >= strlen(magic) && memcmp(input.bytes, magic, strlen(magic)) == 0;
}

static bool ends(const char *magic)
{
    const size_t n = strlen(magic);
    return input.size >= n && memcmp(input.bytes + input.size - n, magic, n) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_begin(10);
    uint8_t *copy = fuzz_copy(bytes, size);
    input.bytes = copy;
    input.size = size;
    if (ends(LNT_BUNDLE_MAGIC))
        read_bundle();
    else if (starts("PK"))
        read_npz();
    else if (starts("\x93NUMPY"))
        read_npy();
    else if (starts("RIFF"))
        read_sound();
    else if (starts("\x89LNT"))
        show_model(copy);
    else {
        read_pb();
        read_costs();
    }
    free(copy);
    return 0;
}
