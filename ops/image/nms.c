/* nms.c — NonMaxSuppression: the best boxes of each class that do not overlap better ones. */
#include "base/checked.h"
#include "ops/copy.h"
#include "ops/data/data.h"

#include <math.h>
#include <string.h>

typedef struct nms {
    const float *boxes, *scores; /* [batch, boxes, 4], [batch, classes, boxes] */
    int64_t batches, classes, n;
    int64_t most;  /* boxes per class */
    float overlap; /* intersection over union above which a box is suppressed */
    bool centered;
    float floor;         /* scores must be above, or NAN */
    const int64_t *kept; /* what the shape rule selected, or NULL */
} nms;

enum { Y0, X0, Y1, X1, AREA, FIELDS, LANES = 4, SAMPLES = 32 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t truths __attribute__((vector_size(LANES * sizeof(float))));

/* Memory for the boxes of one class: those not looked at yet, a heap with the best at its root, and those selected. */
typedef struct selection {
    uint64_t *heap;
    int64_t *box;
    lanes *field; /* of LANES selected ones: corners in order, whichever way they are given, and areas */
} selection;

/* Of the output, of which the shape rule keeps no more rows. */
enum { ROW_BYTES = 3 * sizeof(int64_t), KEPT_ROWS = 10000, MANY = 1 << 20 };
enum { BOX_BYTES = sizeof(uint64_t) + sizeof(int64_t) + FIELDS * sizeof(float) };

/* Memory for n boxes is that for so many: the last lanes are whole. */
static int64_t whole_lanes(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static selection selection_in(void *memory, int64_t n)
{
    selection s = {.heap = memory};
    s.box = (int64_t *)(s.heap + whole_lanes(n));
    s.field = (lanes *)(void *)(s.box + whole_lanes(n));
    return s;
}

static void read_box(const nms *m, int64_t batch, int64_t box, float to[FIELDS])
{
    const float *b = m->boxes + (batch * m->n + box) * 4;
    for (int i = 0; i < 2; i++) {
        const float center = b[1 - i], half = b[3 - i] / 2, one = b[i], other = b[2 + i];
        to[Y0 + i] = m->centered ? center - half : one < other ? one : other;
        to[Y1 + i] = m->centered ? center + half : one < other ? other : one;
    }
    to[AREA] = (to[Y1] - to[Y0]) * (to[X1] - to[X0]);
}

static lanes lesser(lanes a, lanes b)
{
    const truths first = a < b;
    return (lanes)(((truths)a & first) | ((truths)b & ~first));
}

/* Does a box overlap one of n selected ones? */
static bool is_suppressed(const selection *s, int64_t n, const float b[FIELDS], float threshold)
{
    const lanes none = {0}, y0 = none - b[Y0], x0 = none - b[X0], y1 = none + b[Y1], x1 = none + b[X1];
    const lanes *end = s->field + whole_lanes(n) / LANES * FIELDS;
    for (const lanes *f = s->field; f < end && !(b[AREA] <= 0); f += FIELDS) {
        const lanes height = lesser(y1, f[Y1]) + lesser(y0, -f[Y0]),
                    width = lesser(x1, f[X1]) + lesser(x0, -f[X0]);
        const lanes both = height * width;
        const truths found = ~(height <= 0) & ~(width <= 0) & ~(f[AREA] <= 0) &
                             (both / (b[AREA] + f[AREA] - both) > threshold);
        uint64_t any[2];
        memcpy(any, &found, sizeof any);
        if (any[0] | any[1])
            return true;
    }
    return false;
}

/* Lanes without a box have no area, which none overlaps. */
static void add_box(const selection *s, int64_t n, const float b[FIELDS])
{
    lanes *field = s->field + n / LANES * FIELDS;
    if (n % LANES == 0)
        field[AREA] = (lanes){0};
    for (int f = 0; f < FIELDS; f++)
        field[f][n % LANES] = b[f];
}

/* Larger for higher scores, then for lower numbers. */
static uint64_t key_of(float score, uint32_t box)
{
    uint32_t bits;
    score += 0.0f; /* of two zeros neither is higher */
    memcpy(&bits, &score, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
    return (uint64_t)bits << 32 | (UINT32_MAX - box);
}

static int64_t box_of(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}

/* Restores the heap, largest key at the root, below i. */
static void sift_down(uint64_t *heap, int64_t n, int64_t i)
{
    const uint64_t moved = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] < moved)
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

/* A heap of the boxes whose scores are above one bound and not above another, NAN for none. Returns their number. */
static int64_t make_heap(const float *scores, int64_t n_boxes, float above, float most, uint64_t *heap)
{
    const lanes none = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < n_boxes; i += LANES) {
        lanes score = none + NAN;
        if (i + LANES <= n_boxes)
            memcpy(&score, scores + i, sizeof score);
        else
            memcpy(&score, scores + i, (size_t)(n_boxes - i) * sizeof *scores);
        const truths found = (score == score) & ~(score <= above) & ~(score > most);
        int32_t each[LANES];
        memcpy(each, &found, sizeof each);
        for (int64_t j = 0; j < LANES; j++) {
            heap[n] = (uint64_t)(i + j);
            n -= each[j];
        }
    }
    for (int64_t i = 0; i < n; i++)
        heap[i] = key_of(scores[heap[i]], (uint32_t)heap[i]);
    for (int64_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
    return n;
}

/* A score that about `wanted` are above, by SAMPLES of them; the floor where those are too many to leave others. */
static float find_pivot(const float *scores, int64_t n, float floor, int64_t wanted)
{
    float largest[SAMPLES / 2 + 1];
    const int64_t apart = n / SAMPLES, rank = wanted < n / 2 ? wanted * SAMPLES / n : SAMPLES;
    if (rank >= SAMPLES / 2 || apart < 2)
        return floor;
    for (int64_t i = 0; i <= rank; i++)
        largest[i] = isnan(floor) ? -INFINITY : floor;
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t at = rank + 1;
        for (; at > 0 && largest[at - 1] < scores[i * apart]; at--)
            largest[at] = largest[at - 1];
        largest[at] = scores[i * apart];
    }
    return largest[rank];
}

/* Selects in one class. Returns the number of boxes. The better ones are in a heap of their own, which most often is
 * not used up. */
static int64_t select_boxes(const nms *m, int64_t batch, int64_t class, const selection *s)
{
    const float *scores = m->scores + (batch * m->classes + class) * m->n;
    if (m->most == 0)
        return 0;
    float pivot = find_pivot(scores, m->n, m->floor, lnt_least(m->most, m->n) * 2);
    int64_t n = make_heap(scores, m->n, pivot, NAN, s->heap), n_selected = 0;
    while (n_selected < m->most) {
        if (n == 0 && !isnan(pivot)) {
            n = make_heap(scores, m->n, m->floor, pivot, s->heap);
            pivot = NAN;
        }
        if (n == 0)
            break;
        const int64_t best = box_of(s->heap[0]);
        float box[FIELDS];
        read_box(m, batch, best, box);
        s->heap[0] = s->heap[--n];
        sift_down(s->heap, n, 0);
        if (is_suppressed(s, n_selected, box, m->overlap))
            continue;
        add_box(s, n_selected, box);
        s->box[n_selected++] = best;
    }
    return n_selected;
}

/* Selects in all classes; writes [batch, class, box] rows unless out is NULL. Returns their number. */
static int64_t select_all(const nms *m, void *memory, int64_t *out)
{
    const selection s = selection_in(memory, m->n);
    int64_t total = 0;
    /* Without boxes there may be billions of classes. */
    for (int64_t batch = 0; batch < m->batches && m->n > 0; batch++)
        for (int64_t class = 0; class < m->classes; class ++) {
            const int64_t n = select_boxes(m, batch, class, &s);
            for (int64_t i = 0; out && i < n; i++) {
                out[(total + i) * 3] = batch;
                out[(total + i) * 3 + 1] = class;
                out[(total + i) * 3 + 2] = s.box[i];
            }
            total += n;
        }
    return total;
}

static void set_sizes(nms *m, const lnt_site *site)
{
    m->batches = site->in[1]->dims[0];
    m->classes = site->in[1]->dims[1];
    m->n = site->in[1]->dims[2];
    m->centered = lnt_attr_i(site->node, "center_point_box", 0) != 0;
}

static void set_values(nms *m, const int64_t *most, const float *overlap, const float *floor)
{
    m->most = most && *most > 0 ? *most : 0;
    m->overlap = overlap ? *overlap : 0;
    m->floor = floor ? *floor : NAN;
}

static lnt_status check_inputs(const lnt_site *site)
{
    static const lnt_dtype types[] = {LNT_FLOAT, LNT_FLOAT, LNT_INT64, LNT_FLOAT, LNT_FLOAT};
    const lnt_operand *boxes = site->in[0], *scores = site->in[1];
    for (unsigned i = 0; i < site->n_in; i++)
        if (site->in[i] && site->in[i]->dtype != types[i])
            return LNT_SITE_FAIL(site, LNT_E_TYPE, "input %u must be %s", i, lnt_dtype_text(types[i]));
    for (unsigned i = 2; i < site->n_in; i++)
        if (site->in[i] && lnt_operand_count(site->in[i]) >= 0 && lnt_operand_count(site->in[i]) != 1)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %u must hold one value", i);
    if (boxes->rank != 3 || scores->rank != 3 || (boxes->dims[2] >= 0 && boxes->dims[2] != 4))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "boxes must be [batch, n, 4], scores [batch, classes, n]");
    if (lnt_operand_count(boxes) >= 0 && lnt_operand_count(scores) >= 0 &&
        (boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2]))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "boxes and scores differ in number");
    if (boxes->dims[1] > UINT32_MAX)
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "%lld boxes, of at most %u", (long long)boxes->dims[1],
                             UINT32_MAX);
    return LNT_OK;
}

lnt_status lnt_shape_non_max_suppression(lnt_site *site)
{
    int64_t dims[2] = {LNT_DIM_UNKNOWN, 3};
    lnt_set_dims(site, 0, 2, dims);
    LNT_TRY(check_inputs(site));
    const void *data[5] = {NULL};
    for (unsigned i = 0; i < site->n_in; i++) {
        if (site->in[i] && (!site->in[i]->data || lnt_operand_count(site->in[i]) < 0))
            return LNT_UNKNOWN;
        data[i] = site->in[i] ? site->in[i]->data : NULL;
    }
    nms m = {.boxes = data[0], .scores = data[1]};
    set_sizes(&m, site);
    set_values(&m, data[2], data[3], data[4]);
    /* Counting is selecting: the shape rule takes the memory for that for the moment, and keeps the rows if they
     * are few. */
    const int64_t rows =
        lnt_least(m.batches, MANY) * lnt_least(m.classes, MANY) * lnt_least(lnt_least(m.most, m.n), MANY);
    if (site->memory && rows > 0 && rows <= KEPT_ROWS &&
        !(site->kept = lnt_bump_alloc(site->memory, (size_t)rows * ROW_BYTES, site->err)))
        return LNT_E_MEMORY;
    void *memory = lnt_alloc_zero(&lnt_malloc_allocator, (size_t)whole_lanes(m.n), BOX_BYTES, site->err);
    if (!memory)
        return LNT_E_MEMORY;
    dims[0] = select_all(&m, memory, site->kept);
    lnt_free(&lnt_malloc_allocator, memory);
    lnt_set_dims(site, 0, 2, dims);
    return LNT_OK;
}

static lnt_status run_non_max_suppression(lnt_kernel *k, const lnt_step *s)
{
    nms m = *(const nms *)s->params;
    const int64_t n = s->out[0] ? s->out[0]->dims[0] : 0;
    if (n == 0)
        return LNT_OK;
    if (m.kept) {
        memcpy(lnt_out(k, s, 0), m.kept, (size_t)n * ROW_BYTES);
        return LNT_OK;
    }
    m.boxes = lnt_in(k, s, 0);
    m.scores = lnt_in(k, s, 1);
    set_values(&m, lnt_in(k, s, 2), lnt_in(k, s, 3), lnt_in(k, s, 4));
    select_all(&m, lnt_scratch(k, s), lnt_out(k, s, 0));
    return LNT_OK;
}

lnt_status lnt_bind_non_max_suppression(lnt_site *site)
{
    size_t bytes;
    nms *m = lnt_bind_params(site, sizeof *m);
    if (!m)
        return LNT_E_MEMORY;
    LNT_TRY(check_inputs(site));
    set_sizes(m, site);
    m->kept = site->kept;
    if (!lnt_mul_size((size_t)whole_lanes(m->n), BOX_BYTES, &bytes))
        return LNT_SITE_FAIL(site, LNT_E_MEMORY, "%lld boxes", (long long)m->n);
    lnt_bind_scratch(site, bytes);
    site->step->run = run_non_max_suppression;
    return LNT_OK;
}
