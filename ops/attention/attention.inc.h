/* attention.inc.h — attention in one type, R; included by attention.c with R, NAME and ROW. */

/* Key or value j of a head: out of the cache, whose heads are past_head elements apart, or new. */
static inline const R *NAME(cached)(const lnt_attention *p, const void *past, int64_t past_head,
                                    const void *fresh, const lnt_attention_layout *f, int64_t batch,
                                    int64_t head, int64_t j)
{
    if (j < p->past)
        return (const R *)past + (batch * p->kv_heads + head) * past_head + j * f->width;
    return (const R *)fresh + batch * f->batch + head * f->head + (j - p->past) * f->row;
}

/* What the mask, causality, window and padding add to the logits of one query. False if no key may be looked
 * at. */
static bool NAME(add_bias)(const lnt_attention_job *j, int64_t b, int64_t head, int64_t query, R *bias)
{
    const lnt_attention *p = j->p;
    const lnt_attention_range r = lnt_attention_range_of(j, b, query);
    const int64_t mask_at = b * p->mask.batch + head * p->mask.head + query * p->mask.row;
    bool any = false;
    for (int64_t t = 0; t < p->total; t++) {
        bool open = t >= r.first && t < r.end;
        R add = 0;
        if (open && j->mask && p->mask_is_bool)
            open = ((const uint8_t *)j->mask)[mask_at + t] != 0;
        else if (open && j->mask)
            add = ((const R *)j->mask)[mask_at + t];
        bias[t] = open ? add : (R)-INFINITY;
        any |= bias[t] != (R)-INFINITY;
    }
    return any;
}

/* Softmax that gives 0 where there is nothing to choose from. */
static void NAME(choose)(const lnt_attention *p, R *logits, bool any)
{
    if (any && ROW(p)->max(logits, p->total) != (R)-INFINITY)
        ROW(p)->softmax(logits, logits, p->total);
    else
        memset(logits, 0, (size_t)p->total * sizeof *logits);
}

static lnt_status NAME(attend)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_attention_job *j = arg;
    const lnt_attention *p = j->p;
    R *logits = (R *)((char *)j->scratch + thread * p->thread_bytes), *bias = logits + p->total;
    const size_t bytes = (size_t)p->total * sizeof(R);
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t query = item % p->queries, head = item / p->queries % p->heads;
        const int64_t b = item / (p->queries * p->heads), kv = head / (p->heads / p->kv_heads);
        const R *q = (const R *)j->query + b * p->q.batch + head * p->q.head + query * p->q.row;
        R *y = (R *)j->y + b * p->y.batch + head * p->y.head + query * p->y.row;
        R *show = j->logits ? (R *)j->logits + item * p->total : logits;
        for (int64_t t = 0; t < p->total; t++)
            logits[t] =
                ROW(p)->dot(q, NAME(cached)(p, j->past_key, j->past_key_head, j->key, &p->k, b, kv, t),
                            p->k.width) *
                (R)p->scale;
        if (p->show == SHOW_RAW && show != logits)
            memcpy(show, logits, bytes);
        for (int64_t t = 0; t < p->total && p->softcap > 0; t++)
            logits[t] = (R)(p->softcap * tanh((double)logits[t] / p->softcap));
        if (p->show == SHOW_CAPPED && show != logits)
            memcpy(show, logits, bytes);
        const bool any = NAME(add_bias)(j, b, head, query, bias);
        ROW(p)->add(logits, bias, p->total);
        if (p->show == SHOW_BIASED && show != logits)
            memcpy(show, logits, bytes);
        NAME(choose)(p, logits, any);
        if (p->show == SHOW_CHOSEN && show != logits)
            memcpy(show, logits, bytes);
        memset(y, 0, (size_t)p->v.width * sizeof *y);
        for (int64_t t = 0; t < p->total; t++)
            if (logits[t] != 0)
                ROW(p)->add_scaled(
                    y, NAME(cached)(p, j->past_value, j->past_value_head, j->value, &p->v, b, kv, t), 0,
                    logits + t, 1, p->v.width);
    }
    return LNT_OK;
}
