#include "config.h"

#include "engine/session/saved_beginning.h"

#include <string.h>

#include "engine/session/saved_kv_internal.h"

int session_expect(struct mw_session *s, const uint32_t *ids, uint32_t n, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);

    if (s->work == NULL || n > s->settled.o.n_ctx - held)
        return err_set(e, ERR_CONTEXT, "%u tokens do not fit the context", n);
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] >= s->m->desc->n_vocab)
            return err_set(e, ERR_ARGUMENT, "token id %u is outside of the vocabulary", ids[i]);
    tokens_add_prompt(&s->tokens, s->work->choice.has_blas ? &s->work->choice.products : NULL,
                      held, ids, n);
    return 0;
}

void session_fingerprints(const struct mw_session *s, uint32_t n_page, char (*out)[DIGEST_HEX])
{
    uint32_t page[KV_PAGE];
    struct kv_file_head head;
    char before[DIGEST_HEX];
    struct digest d;

    saved_kv_head(s, &head);
    digest_sha256(head.facts, strlen(head.facts), before);
    for (uint32_t i = 0; i < n_page; i++) {
        for (uint32_t k = 0; k < KV_PAGE; k++)
            page[k] = saved_kv_entry(&s->tokens, i * KV_PAGE + k);
        digest_start(&d, DIGEST_SHA256);
        digest_add(&d, before, strlen(before));
        digest_add(&d, page, sizeof page);
        digest_end(&d, out[i]);
        memcpy(before, out[i], sizeof before);
    }
}

static bool needs_copy(const struct mw_session *s)
{
    return kv_copy_bytes(s->kv) > 0;
}

void session_mark_beginning(struct mw_session *s, uint32_t n)
{
    s->beginning_at = needs_copy(s) ? n : 0;
}

/* Returns whether there is a copy at n.  *i is its number. */
static bool find_copy(const struct mw_session *s, uint32_t n, uint32_t *i)
{
    for (*i = 0; *i < copies_count(s->copies); (*i)++)
        if (copies_at(s->copies, *i) == n)
            return true;
    return false;
}

uint64_t session_beginning_bytes(const struct mw_session *s, uint32_t n)
{
    uint32_t copy;

    if (s->work == NULL || n == 0 || n > kv_tokens(s->kv) ||
        (needs_copy(s) && !find_copy(s, n, &copy)))
        return 0;
    return kv_page_bytes_at(s->kv, n) + kv_copy_bytes_at(s->kv, n) + n * sizeof(uint32_t);
}

static bool is_faster(const struct mw_session *s, double seconds, uint32_t n, bool if_unknown)
{
    double tps = s->plan.prefill_tps;

    return seconds <= 0 || tps <= 0 ? if_unknown : seconds < n / tps;
}

bool session_reads_faster(const struct mw_session *s, uint64_t bytes, uint32_t n)
{
    return is_faster(s, session_kv_read_s(s, bytes), n, true);
}

bool session_writes_faster(const struct mw_session *s, uint64_t bytes, uint32_t n)
{
    return is_faster(s, session_kv_write_s(s, bytes), n, false);
}

/* --- saving --- */

static int save(struct mw_session *s, struct kv_file *f, uint32_t n, struct err *e)
{
    struct tail tail = { .n_token = n, .n_entry = n, .ring_from = n, .n_copy = needs_copy(s) };
    uint32_t n_page = kv_page_count(s->kv, n), copy;

    for (uint32_t i = 0; i < n_page; i++)
        if (kv_each_page(s->kv, i, n, saved_kv_put, f, e) != 0 || kv_file_end_part(f, e) != 0)
            return -1;
    if (kv_file_write(f, &tail, sizeof tail, e) != 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t one = saved_kv_entry(&s->tokens, i);

        if (kv_file_write(f, &one, sizeof one, e) != 0)
            return -1;
    }
    if (tail.n_copy > 0 && find_copy(s, n, &copy) &&
        copies_each(s->copies, copy, saved_kv_put, f, e) != 0)
        return -1;
    return kv_file_end_part(f, e);
}

int session_save_beginning(struct mw_session *s, const char *path, uint32_t n,
                           const struct saved_kv_call *call, struct saved_kv *out,
                           struct err *e)
{
    struct saved_kv_watch watch = { s, call };
    struct kv_file_head head;
    struct kv_file *f;
    int rc;

    *out = (struct saved_kv){ .n_token = 0 };
    session_drop_drafts(s);
    if (session_beginning_bytes(s, n) == 0)
        return err_set(e, ERR_ARGUMENT, "the session has no copy at token %u", n);
    if (kv_file_change(&f, path, saved_kv_pieces(s->m, &s->settled.o), e) != 0)
        return -1;
    saved_kv_watch(f, &watch);
    saved_kv_head(s, &head);
    head.n_token = n;
    kv_file_begin(f);
    rc = save(s, f, n, e) != 0 ? -1 : kv_file_commit(f, &head, e);
    *out = (struct saved_kv){ .n_token = n, .bytes = kv_file_written(f) };
    kv_file_close(f);
    return rc;
}

/* --- loading --- */

static int refuse(const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s", what);
}

/* The ids of the file are those that the session expects. */
static int check_ids(const struct mw_session *s, struct kv_file *f, uint32_t n, struct err *e)
{
    uint32_t got[ENTRIES];

    for (uint32_t at = 0; at < n; at += ENTRIES) {
        uint32_t part = n - at < ENTRIES ? n - at : ENTRIES;

        if (kv_file_read(f, got, part * sizeof *got, e) != 0)
            return -1;
        for (uint32_t i = 0; i < part; i++)
            if (got[i] != saved_kv_entry(&s->tokens, at + i))
                return refuse("they are of another text", e);
    }
    return 0;
}

static int check(const struct mw_session *s, struct kv_file *f, uint32_t n, struct err *e)
{
    const struct kv_file_head *h = kv_file_head(f);
    struct kv_file_head own;
    const char *why;
    struct tail tail;

    saved_kv_head(s, &own);
    why = saved_kv_why_not(&own, h);
    if (why != NULL)
        return refuse(why, e);
    if (h->n_token != n || kv_file_parts(f) != kv_page_count(s->kv, n) + 1)
        return refuse("its parts contradict each other", e);
    kv_file_seek(f, kv_file_parts(f) - 1);
    if (kv_file_read(f, &tail, sizeof tail, e) != 0)
        return -1;
    if (tail.n_token != n || tail.n_entry != n || tail.n_copy != needs_copy(s))
        return refuse("its parts contradict each other", e);
    return check_ids(s, f, n, e);
}

static int take_pages(struct mw_session *s, struct kv_file *f, uint32_t n, struct err *e)
{
    uint32_t n_page = kv_page_count(s->kv, n);

    for (uint32_t i = 0; i < n_page; i++) {
        kv_file_seek(f, i);
        if (kv_each_page(s->kv, i, n, saved_kv_take, f, e) != 0)
            return -1;
    }
    return 0;
}

/* Fill the session, which holds nothing. */
static int take_all(struct mw_session *s, struct kv_file *f, uint32_t n, struct err *e)
{
    struct tail tail;
    int rc;

    if (settle_memory(s, n, e) != 0)
        return -1;
    kv_fill_begin(s->kv, n);
    rc = take_pages(s, f, n, e);
    kv_fill_end(s->kv, n, n);
    if (rc != 0 || !needs_copy(s))
        return rc;
    /* The copy is after the ids. */
    kv_file_seek(f, kv_file_parts(f) - 1);
    if (kv_file_read(f, &tail, sizeof tail, e) != 0 || check_ids(s, f, n, e) != 0 ||
        kv_copy_restore(s->kv, n, saved_kv_take, f, e) != 0)
        return -1;
    return saved_kv_has_own_ids(s, n) ? 0 : refuse("the state is of other tokens", e);
}

int session_load_beginning(struct mw_session *s, const char *path, uint32_t n,
                           const struct saved_kv_call *call, struct saved_kv *out,
                           struct err *e)
{
    struct saved_kv_watch watch = { s, call };
    struct err ignored = ERR_INIT;
    struct kv_file *f;
    int rc = -1;

    *out = (struct saved_kv){ .n_token = 0 };
    if (kv_file_open(&f, path, saved_kv_pieces(s->m, &s->settled.o), e) != 0)
        return -1;
    saved_kv_watch(f, &watch);
    if (check(s, f, n, e) == 0) {
        saved_kv_empty(s);
        rc = take_all(s, f, n, e);
        if (rc != 0) {
            saved_kv_empty(s);
            (void)settle_memory(s, 0, &ignored); /* weights may use the space again */
        }
        s->pass_end_ns = 0;
        publish_memory(s);
    }
    if (rc != 0 && e->code == ERR_FORMAT)
        (void)kv_file_discard(f);
    *out = (struct saved_kv){ .n_token = kv_tokens(s->kv), .bytes = kv_file_bytes_read(f) };
    kv_file_close(f);
    return rc;
}
