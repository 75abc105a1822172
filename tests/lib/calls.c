#include "config.h"

#include "tests/lib/calls.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/fail_with.h"
#include "tests/lib/model_copy.h"
#include "tests/lib/model_path.h"

#define END_MS 60000 /* longer than any answer of a test takes */

static struct mw_model *open_path(const char *path)
{
    struct err e = ERR_INIT;
    struct mw_model *m;

    if (path == NULL)
        skip();
    if (mw_model_open(&m, path, &e) != 0)
        fail_with(&e);
    return m;
}

struct mw_model *open_model(const char *name)
{
    return open_path(model_path(name));
}

struct mw_model *open_model_copy(const char *name)
{
    return open_path(model_copy(name));
}

void give_limits(struct mw_model *m, const struct mw_options *o, double disk_bytes_s)
{
    struct mw_limits l = { .disk_bytes_s = disk_bytes_s, .memory_bytes_s = 2e10, .measured_s = 1 };

    mw_rates_list(m, o, &l);
    for (uint32_t i = 0; i < l.n_rate; i++) {
        l.rate[i].column_bytes_s = 1e9;
        l.rate[i].chunk_flops_s = 1e9;
        l.rate[i].measured_s = 1;
    }
    mw_model_set_limits(m, &l);
}

struct mw_options small_options(uint32_t n_ctx)
{
    struct mw_options o;

    mw_options_default(&o);
    o.n_ctx = n_ctx;
    o.memory_bytes = 192 * MIB;
    o.n_thread = 2;
    return o;
}

uint32_t vocab_of(const struct mw_model *m)
{
    struct mw_model_info info;

    mw_model_info(m, &info);
    return info.n_vocab;
}

uint64_t smallest_budget(struct mw_model *m, const struct mw_options *o)
{
    struct err e = ERR_INIT;
    uint64_t budget;
    uint32_t ctx;

    if (mw_plan_fit(m, o, &budget, &ctx, &e) != 0)
        fail_with(&e);
    return budget;
}

struct mw_session *open_session(struct mw_model *m, const struct mw_options *o)
{
    struct err e = ERR_INIT;
    struct mw_session *s;

    if (mw_session_open(&s, m, o, &e) != 0)
        fail_with(&e);
    return s;
}

void eval(struct mw_session *s, const uint32_t *ids, size_t n)
{
    struct err e = ERR_INIT;

    if (mw_session_eval(s, ids, n, NULL, NULL, &e) != 0)
        fail_with(&e);
}

enum mw_event_kind wait_for_end(struct mw_chat *c, struct said *said)
{
    memset(said, 0, sizeof *said);
    for (;;) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };
        struct mw_event event;

        if (poll(&p, 1, END_MS) != 1)
            fail_msg("no event within a minute");
        while (mw_chat_next(c, &event)) {
            if (event.kind == MW_EVENT_TEXT && said->len + event.len < sizeof said->text) {
                memcpy(said->text + said->len, event.text, event.len);
                said->len += event.len;
            }
            if (event.kind == MW_EVENT_NOTICE)
                snprintf(said->notice, sizeof said->notice, "%.*s", (int)event.len, event.text);
            said->receipt = event.receipt;
            said->err = event.err;
            if (event.kind == MW_EVENT_READY || event.kind == MW_EVENT_DONE ||
                event.kind == MW_EVENT_PLAN || event.kind == MW_EVENT_REFUSED ||
                event.kind == MW_EVENT_ERROR)
                return event.kind;
        }
    }
}

struct mw_chat *open_chat(struct mw_model *m, const struct mw_chat_options *o)
{
    struct err e = ERR_INIT;
    struct mw_chat *c;
    struct said said;

    if (mw_chat_open(&c, m, o, &e) != 0)
        fail_with(&e);
    if (wait_for_end(c, &said) != MW_EVENT_READY)
        fail_with(&said.err);
    return c;
}

void ask(struct mw_chat *c, const char *text, struct said *said)
{
    struct err e = ERR_INIT;

    if (mw_chat_send(c, text, strlen(text), &e) != 0)
        fail_with(&e);
    assert_int_equal(wait_for_end(c, said), MW_EVENT_DONE);
}
