/* See memory_look.h. */
#include "config.h"

#include "tests/lib/memory_look.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/stream/stream.h"

struct memory_look memory_look;

void memory_look_now(void)
{
    struct mw_sample *s = memory_look.session != NULL ? malloc(sizeof *s) : NULL;
    uint64_t used = 0, plan = 0, unused;

    if (s == NULL)
        return;
    mw_session_sample(memory_look.session, s);
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        used += s->mem.used[i];
        plan += s->mem.plan[i];
    }
    assert_true(plan <= s->run.budget_bytes);
    assert_true(used <= s->run.budget_bytes);
    /* Borrowed KV space is no more than the plan has of it, with what no item takes. */
    unused = s->mem.plan[MW_ROW_KV_GLOBAL] + s->mem.plan[MW_ROW_KV_INDEX];
    assert_true(s->mem.lent_bytes <= unused + s->run.budget_bytes - plan);
    memory_look.predicted = s->run.predicted_decode;
    memory_look.n++;
    free(s);
}

/* The linker replaces calls of stream_set_memory() by calls of this. */
int __real_stream_set_memory(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes,
                             struct err *e);
int __wrap_stream_set_memory(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes,
                             struct err *e);

int __wrap_stream_set_memory(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes,
                             struct err *e)
{
    int rc;

    memory_look_now();
    rc = __real_stream_set_memory(s, n_slot, pinned_bytes, e);
    memory_look_now(); /* the memory of a small model is there at once */
    return rc;
}
