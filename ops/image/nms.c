/* nms.c — NonMaxSuppression: the best boxes of each class that do not overlap better ones. */
#include "base/checked.h"
#include "ops/data/data.h"

typedef struct nms {
    const float *boxes, *scores; /* [batch, boxes, 4], [batch, classes, boxes] */
    int64_t batches, classes, n;
    int64_t most;  /* boxes per class */
    float overlap; /* intersection over union above which a box is suppressed */
    bool has_floor, centered;
    float floor; /* scores must be above */
} nms;

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

/* Corners in order, whichever way they are given. */
typedef struct rectangle {
    float y0, x0, y1, x1;
} rectangle;

static rectangle read_box(const nms *m, int64_t batch, int64_t box)
{
    const float *b = m->boxes + (batch * m->n + box) * 4;
    if (m->centered)
        return (rectangle){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    return (rectangle){b[0] < b[2] ? b[0] : b[2], b[1] < b[3] ? b[1] : b[3], b[0] < b[2] ? b[2] : b[0],
                       b[1] < b[3] ? b[3] : b[1]};
}

static float area(rectangle r)
{
    return (r.y1 - r.y0) * (r.x1 - r.x0);
}

static bool overlaps(rectangle a, rectangle b, float threshold)
{
    const rectangle both = {a.y0 > b.y0 ? a.y0 : b.y0, a.x0 > b.x0 ? a.x0 : b.x0, a.y1 < b.y1 ? a.y1 : b.y1,
                            a.x1 < b.x1 ? a.x1 : b.x1};
    if (both.y1 <= both.y0 || both.x1 <= both.x0 || area(a) <= 0 || area(b) <= 0)
        return false;
    return area(both) / (area(a) + area(b) - area(both)) > threshold;
}

/* Higher scores first, then lower numbers. */
static bool comes_before(candidate a, candidate b)
{
    return a.score > b.score || (a.score == b.score && a.box < b.box);
}

/* Restores the heap, first in order at the root, below i. */
static void sift_down(candidate *heap, int64_t n, int64_t i)
{
    const candidate moved = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && comes_before(heap[child + 1], heap[child]))
            child++;
        if (!comes_before(heap[child], moved))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

/* Selects in one class; list has room for all boxes twice, the second half gets the selected ones. Returns
 * their number. */
static int64_t select_boxes(const nms *m, int64_t batch, int64_t class, candidate *list)
{
    const float *scores = m->scores + (batch * m->classes + class) * m->n;
    candidate *selected = list + m->n;
    int64_t n = 0, n_selected = 0;
    for (int64_t i = 0; i < m->n; i++)
        if (scores[i] == scores[i] && (!m->has_floor || scores[i] > m->floor))
            list[n++] = (candidate){scores[i], i};
    for (int64_t i = n / 2; i-- > 0;)
        sift_down(list, n, i);
    while (n > 0 && n_selected < m->most) {
        const candidate best = list[0];
        const rectangle box = read_box(m, batch, best.box);
        bool keep = true;
        list[0] = list[--n];
        sift_down(list, n, 0);
        for (int64_t i = 0; i < n_selected && keep; i++)
            keep = !overlaps(box, read_box(m, batch, selected[i].box), m->overlap);
        if (keep)
            selected[n_selected++] = best;
    }
    return n_selected;
}

/* Selects in all classes; writes [batch, class, box] rows unless out is NULL. Returns their number. */
static int64_t select_all(const nms *m, candidate *list, int64_t *out)
{
    int64_t total = 0;
    /* Without boxes there may be billions of classes. */
    for (int64_t batch = 0; batch < m->batches && m->n > 0; batch++)
        for (int64_t class = 0; class < m->classes; class ++) {
            const int64_t n = select_boxes(m, batch, class, list);
            for (int64_t i = 0; out && i < n; i++) {
                out[(total + i) * 3] = batch;
                out[(total + i) * 3 + 1] = class;
                out[(total + i) * 3 + 2] = list[m->n + i].box;
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
    m->most = most ? *most : 0;
    m->overlap = overlap ? *overlap : 0;
    m->has_floor = floor != NULL;
    m->floor = floor ? *floor : 0;
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
    /* Counting is selecting: the shape rule takes the memory for that for the moment. */
    candidate *list = lnt_alloc_zero(&lnt_malloc_allocator, (size_t)m.n, 2 * sizeof *list, site->err);
    if (!list)
        return LNT_E_MEMORY;
    dims[0] = select_all(&m, list, NULL);
    lnt_free(&lnt_malloc_allocator, list);
    lnt_set_dims(site, 0, 2, dims);
    return LNT_OK;
}

static lnt_status run_non_max_suppression(lnt_kernel *k, const lnt_step *s)
{
    nms m = *(const nms *)s->params;
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
    if (!lnt_mul_size((size_t)m->n, 2 * sizeof(candidate), &bytes))
        return LNT_SITE_FAIL(site, LNT_E_MEMORY, "%lld boxes", (long long)m->n);
    lnt_bind_scratch(site, bytes ? bytes : 1);
    site->step->run = run_non_max_suppression;
    return LNT_OK;
}
