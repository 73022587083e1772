/* check_run.h — what builds with a sanitizer look at around every step (base/lnt_assert.h). Elsewhere
 * nothing. */
#ifndef LNT_RUNTIME_CHECK_RUN_H
#define LNT_RUNTIME_CHECK_RUN_H

#include "runtime/internal.h"

#ifdef LNT_CHECKED
/* Before n steps that run side by side. Returns a hash of all that they have to leave as it is. */
uint64_t lnt_check_before(lnt_session *s, const lnt_step *const *step, uint32_t n);
/* After them; with a status other than OK their outputs may be incomplete. */
void lnt_check_after(lnt_session *s, const lnt_step *const *step, uint32_t n, uint64_t kept,
                     lnt_status status);
/* Once steps [from, n_steps) of the frame have their places: no two storages alive at once share memory. */
void lnt_check_plan(lnt_session *s, const lnt_frame *f);
#else
static inline uint64_t lnt_check_before(lnt_session *s, const lnt_step *const *step, uint32_t n)
{
    (void)s, (void)step, (void)n;
    return 0;
}

static inline void lnt_check_after(lnt_session *s, const lnt_step *const *step, uint32_t n, uint64_t kept,
                                   lnt_status status)
{
    (void)s, (void)step, (void)n, (void)kept, (void)status;
}

static inline void lnt_check_plan(lnt_session *s, const lnt_frame *f)
{
    (void)s, (void)f;
}
#endif

#endif
