/* cases.c — inputs and expected outputs: ONNX case folders and golden vectors. */
#include "cli/data/cases.h"

#include "base/checked.h"
#include "cli/data/folder.h"
#include "cli/data/inputs.h"
#include "formats/golden.h"
#include "formats/tensor_file.h"
#include "formats/tensor_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lnt_allocator *const memory = &lnt_malloc_allocator;

static int by_number(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const long i = strtol(strrchr(x, '_') + 1, NULL, 10), j = strtol(strrchr(y, '_') + 1, NULL, 10);
    return i != j ? (i > j) - (i < j) : strcmp(x, y);
}

lnt_status lnt_case_folders(const char *folder, lnt_texts *folders, lnt_error *err)
{
    const size_t first = folders->n;
    lnt_texts names = {0};
    LNT_TRY(lnt_folder_names(folder, &names, err));
    for (size_t i = 0; i < names.n; i++)
        if (lnt_is_case_folder(names.item[i]))
            lnt_texts_add(folders, lnt_cli_text("%s/%s", folder, names.item[i]));
    if (folders->n > first)
        qsort(folders->item + first, folders->n - first, sizeof *folders->item, by_number);
    return LNT_OK;
}

bool lnt_is_case_folder(const char *name)
{
    return strncmp(name, "test_data_set_", 14) == 0;
}

/* One more than the largest K of input_K.pb and of output_K.pb in folder; none if there is no such folder. */
static lnt_status count_files(const char *folder, uint32_t *n_in, uint32_t *n_out, lnt_error *err)
{
    lnt_texts names = {0};
    LNT_TRY(lnt_folder_names(folder, &names, err));
    *n_in = *n_out = 0;
    for (size_t i = 0; i < names.n; i++) {
        char kind[8], tail[4];
        unsigned k;
        if (sscanf(names.item[i], "%7[a-z]_%5u.%3s", kind, &k, tail) != 3 || strcmp(tail, "pb") != 0)
            continue;
        uint32_t *n = strcmp(kind, "input") == 0 ? n_in : strcmp(kind, "output") == 0 ? n_out : NULL;
        if (n && k + 1 > *n)
            *n = k + 1;
    }
    return LNT_OK;
}

/* Tensors that are read one by one. */
typedef struct tensors {
    lnt_tensor *item;
    size_t n, capacity;
    int64_t length; /* of the file read last, as lnt_tensor_list has it */
} tensors;

static lnt_tensor *next_tensor(tensors *to)
{
    to->item = lnt_cli_grow(to->item, to->n, &to->capacity, sizeof *to->item);
    to->item[to->n] = (lnt_tensor){.data = NULL};
    return &to->item[to->n++];
}

/* Those of the message, behind the others. */
static lnt_status read_message(const lnt_blob *blob, tensors *to, lnt_error *err)
{
    lnt_tensor_list list;
    lnt_wire part;
    LNT_TRY(lnt_tensor_list_open(blob->bytes, blob->size, &list, err));
    to->length = list.length;
    if (list.length == LNT_LIST_TENSOR)
        return lnt_tensor_parse_pb(blob->bytes, blob->size, memory, next_tensor(to), NULL, 0, err);
    while (lnt_tensor_list_next(&list, &part))
        LNT_TRY(lnt_tensor_parse_pb(part.at, lnt_wire_bytes(part), memory, next_tensor(to), NULL, 0, err));
    return LNT_OK;
}

static lnt_status read_one(const char *folder, const char *kind, uint32_t k, tensors *to, lnt_error *err)
{
    const char *path = lnt_cli_text("%s/%s_%" PRIu32 ".pb", folder, kind, k);
    lnt_blob blob;
    LNT_TRY(lnt_blob_open(path, false, memory, &blob, err));
    const lnt_status status = read_message(&blob, to, err);
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", path);
    lnt_blob_close(&blob);
    return status;
}

static lnt_status read_inputs(const char *folder, uint32_t files, lnt_case *c, lnt_error *err)
{
    tensors in = {0};
    lnt_status status = LNT_OK;
    c->length = lnt_cli_alloc(files * sizeof *c->length);
    for (uint32_t i = 0; i < files && status == LNT_OK; i++) {
        status = read_one(folder, "input", i, &in, err);
        c->length[c->n_lengths++] = in.length;
        c->has_lists |= in.length != LNT_LIST_TENSOR;
    }
    c->in = in.item;
    c->n_in = (uint32_t)in.n;
    return status;
}

static lnt_status read_outputs(const char *folder, uint32_t files, lnt_case *c, lnt_error *err)
{
    tensors out = {0};
    for (uint32_t i = 0; i < files; i++) {
        out.n = 0;
        const lnt_status status = read_one(folder, "output", i, &out, err);
        lnt_case_output *all = lnt_cli_alloc((c->n_out + out.n) * sizeof *all);
        if (c->n_out)
            memcpy(all, c->out, c->n_out * sizeof *all);
        for (size_t k = 0; k < out.n; k++)
            all[c->n_out++] = (lnt_case_output){.tensor = out.item[k],
                                                .element = out.length == LNT_LIST_TENSOR ? -1 : (int64_t)k};
        c->out = all;
        c->has_lists |= out.length != LNT_LIST_TENSOR;
        LNT_TRY(status);
    }
    return LNT_OK;
}

static lnt_status read_case(const char *folder, lnt_case *c, lnt_error *err)
{
    const char *slash = strrchr(folder, '/');
    *c = (lnt_case){.name = slash && slash[1] ? slash + 1 : folder};
    uint32_t n_in, n_out;
    LNT_TRY(count_files(folder, &n_in, &n_out, err));
    LNT_REQUIRE(n_in + n_out > 0, err, LNT_E_NOT_FOUND, "%s: no input_K.pb or output_K.pb", folder);
    LNT_TRY(read_inputs(folder, n_in, c, err));
    return read_outputs(folder, n_out, c, err);
}

lnt_status lnt_cases_read(const lnt_texts *folders, lnt_cases *cases, lnt_error *err)
{
    cases->item = lnt_cli_alloc(folders->n * sizeof *cases->item);
    for (size_t i = 0; i < folders->n; i++) {
        cases->n++; /* a case that fails half-way is freed like the others */
        LNT_TRY(read_case(folders->item[i], &cases->item[i], err));
    }
    return LNT_OK;
}

/* Room for the records of one case: as many tensors as its largest indices ask for. */
static void size_golden(const lnt_rec_golden *first, uint32_t n, lnt_case *c)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *count = first[i].role == LNT_GOLDEN_INPUT ? &c->n_in : &c->n_out;
        if (first[i].index >= *count)
            *count = first[i].index + 1;
    }
    c->in = lnt_cli_alloc(c->n_in * sizeof *c->in);
    c->out = lnt_cli_alloc(c->n_out * sizeof *c->out);
    c->name = lnt_cli_text("golden %" PRIu32, first->test);
    for (uint32_t i = 0; i < c->n_out; i++)
        c->out[i].element = -1;
}

/* Of two records for one tensor the later one counts. A seed stands for as many bytes as a file likes. */
static lnt_status read_golden(const lnt_opened *o, const lnt_rec_golden *r, lnt_case *c, lnt_error *err)
{
    lnt_case_output *out = r->role == LNT_GOLDEN_INPUT ? NULL : &c->out[r->index];
    lnt_tensor *t = out ? &out->tensor : &c->in[r->index];
    size_t bytes;
    const int64_t *extents = lnt_golden_extents(&o->file, r);
    LNT_REQUIRE(lnt_shape_bytes(extents, r->rank, lnt_dtype_size((lnt_dtype)r->dtype), &bytes), err,
                LNT_E_FILE, "golden vectors: bad extents");
    if (r->encoding == LNT_GOLDEN_SEEDED)
        LNT_TRY(lnt_room_for(bytes, c->name, err));
    if (out) {
        out->tolerance = r->tolerance;
        out->stride = r->encoding == LNT_GOLDEN_SAMPLED ? r->stride : 0;
        out->rank = r->rank;
        for (unsigned i = 0; i < r->rank; i++)
            out->dims[i] = extents[i];
    }
    lnt_tensor_free(memory, t);
    return lnt_golden_tensor(&o->file, r, memory, t, err);
}

lnt_status lnt_cases_golden(const lnt_opened *o, lnt_cases *cases, lnt_error *err)
{
    const lnt_rec_golden *record = o->file.golden;
    const uint32_t n = o->file.n_golden;
    cases->item = lnt_cli_alloc(n * sizeof *cases->item);
    for (uint32_t first = 0, end; first < n; first = end) {
        lnt_case *c = &cases->item[cases->n++];
        for (end = first; end < n && record[end].test == record[first].test; end++)
            ;
        size_golden(record + first, end - first, c);
        for (uint32_t i = first; i < end; i++)
            LNT_TRY(read_golden(o, &record[i], c, err));
    }
    return LNT_OK;
}

void lnt_cases_free(lnt_cases *cases)
{
    for (size_t i = 0; i < cases->n; i++) {
        lnt_case *c = &cases->item[i];
        for (uint32_t k = 0; k < c->n_in; k++)
            lnt_tensor_free(memory, &c->in[k]);
        for (uint32_t k = 0; k < c->n_out; k++)
            lnt_tensor_free(memory, &c->out[k].tensor);
    }
    *cases = (lnt_cases){0};
}

lnt_status lnt_case_set_inputs(const lnt_opened *o, lnt_session *s, const lnt_case *c, lnt_error *err)
{
    for (uint32_t i = 0; i < lnt_model_input_count(o->model); i++) {
        lnt_value_info info;
        LNT_TRY(lnt_model_input(o->model, i, &info));
        if (i < c->n_in && c->in[i].data) {
            const lnt_tensor t = lnt_tensor_as(&c->in[i], (lnt_dtype)info.dtype);
            LNT_TRY(lnt_set_input(s, i, &t, err));
        } else {
            LNT_REQUIRE(info.is_state, err, LNT_E_NOT_FOUND, "%s: no tensor for input %s", c->name,
                        info.name);
        }
    }
    return LNT_OK;
}
