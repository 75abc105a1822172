#include "config.h"

#include "engine/session/saved_kv.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/build_name.h"
#include "engine/base/digest.h"
#include "engine/base/units.h"
#include "engine/model/rope.h"
#include "engine/session/options.h"
#include "engine/session/saved_kv_internal.h"

#define COPIES     2    /* that are saved: of the last turn, and before its answer */
#define RING_MOST  8192 /* positions that a ring has beside its window, at most */
#define NOTE_BYTES 16   /* of the caller, for a token */
#define SPARE      16   /* pieces */

/* --- memory --- */

static uint32_t pieces_of(uint64_t bytes)
{
    return (uint32_t)((bytes + KV_PIECE - 1) / KV_PIECE);
}

uint32_t saved_kv_pieces(const struct mw_model *m, const struct mw_options *o)
{
    const struct model_desc *d = m->desc;
    uint64_t page = 0, global, sliding, state = recurrent_copy_bytes(&d->recurrent), tail;
    uint32_t n_ctx = options_ctx(m, o), window = d->hp->n_swa;
    uint32_t n_page = (n_ctx + KV_PAGE - 1) / KV_PAGE;
    uint32_t ring = (window < n_ctx ? window : n_ctx) + RING_MOST;

    mw_kv_token_bytes(m, o, &global, &sliding);
    for (uint32_t i = 0; i < d->n_kv; i++)
        page += kv_index_page_bytes(&d->kv_specs[i], options_kv_type(o->kv_k));
    page += global * KV_PAGE;
    tail = sliding * ring + state + COPIES * (sliding * window + state) +
           (uint64_t)n_ctx * (sizeof(uint32_t) + NOTE_BYTES);
    return n_page * pieces_of(page) + pieces_of(tail) + SPARE;
}

uint64_t mw_kv_file_bytes(const struct mw_model *m, const struct mw_options *o)
{
    return o->saves_kv ? kv_file_memory(saved_kv_pieces(m, o)) : 0;
}

static double disk_s(const struct mw_session *s, uint64_t bytes, double fresh_bytes_s)
{
    uint64_t all = counter_get(&s->telemetry->ahead_bytes),
             done = counter_get(&s->telemetry->ahead_done_bytes);

    return mw_kv_read_s(bytes, all > done ? all - done : 0, limits_of(s->m).disk_bytes_s,
                        fresh_bytes_s);
}

double session_kv_read_s(const struct mw_session *s, uint64_t bytes)
{
    return disk_s(s, bytes, limits_of(s->m).fresh_bytes_s);
}

#define WRITE_SHARE 8 /* a disk writes more slowly than it reads */

double session_kv_write_s(const struct mw_session *s, uint64_t bytes)
{
    return disk_s(s, WRITE_SHARE * bytes, 0);
}

/* --- facts --- */

/* Facts on which the arithmetic depends, and why a file is not used if one differs. */
static const struct fact {
    const char *key, *why;
} fact_table[] = {
    { "memwall", "another version of memwall, or of the C library, wrote them" },
    { "model", "they are of another model, or its file has changed" },
    { "kernels", "they were computed by other kernels" },
    { "arithmetic", "they were computed with the other setting of --exact" },
    { "products", "they were computed with another OpenBLAS, or with other products of it" },
    { "rope", "they were rotated for another length of the context" },
    { "kv", "they are of other KV types" },
};
enum { N_FACT = sizeof fact_table / sizeof fact_table[0], FACT_BYTES = 128 };

static void add_file(struct digest *d, const struct model_file *f)
{
    const uint64_t is[] = { f->ino, f->size, (uint64_t)f->mtime_ns, (uint64_t)f->ctime_ns };

    digest_add(d, is, sizeof is);
}

/* The files as they were opened: after any change of them, no KV file fits.  Of a snapshot, the
 * configuration has numbers that keys and values depend on, such as the base of rope. */
static void model_digest(const struct mw_model *m, char out[DIGEST_HEX])
{
    struct digest d;

    digest_start(&d, DIGEST_SHA256);
    for (uint32_t i = 0; i < m->catalogue->n_file; i++)
        add_file(&d, &m->catalogue->files[i]);
    if (m->catalogue->kind == CATALOGUE_SNAPSHOT)
        add_file(&d, &m->catalogue->config);
    digest_end(&d, out);
}

/* "openblas 0.3.21 Haswell 03000120": the library, of which each version and core rounds
 * differently, and a bit for each weight type that it multiplies; "" without it. */
static void products_text(const struct product_choice *c, char *buf, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    if (!c->has_blas)
        return;
    used = (size_t)snprintf(buf, n, "%s ", mw_blas_name());
    for (int t = 0; t < TYPE_COUNT && used < n; t += 4) {
        unsigned bits = 0;

        for (int k = 0; k < 4 && t + k < TYPE_COUNT; k++)
            bits |= (unsigned)c->products.by_blas[t + k] << k;
        used += (size_t)snprintf(buf + used, n - used, "%x", bits);
    }
}

/* "0.1.0 5b3f01c2d4e6a798, C library 2.36": both compute. */
static void program_text(char buf[FACT_BYTES])
{
    char build[BUILD_NAME_BYTES];

    build_name(build);
    snprintf(buf, FACT_BYTES, "%s, C library %.40s", build, gnu_get_libc_version());
}

static void fact_value(const struct mw_session *s, const char *key, char buf[FACT_BYTES])
{
    const struct mw_options *o = &s->settled.o;
    const struct hparams *hp = &s->m->catalogue->hparams;

    if (strcmp(key, "memwall") == 0)
        program_text(buf);
    else if (strcmp(key, "model") == 0)
        model_digest(s->m, buf);
    else if (strcmp(key, "kernels") == 0)
        snprintf(buf, FACT_BYTES, "%s", s->kernels->name);
    else if (strcmp(key, "arithmetic") == 0)
        snprintf(buf, FACT_BYTES, "%s", o->exact ? "exact" : "usual");
    else if (strcmp(key, "products") == 0)
        products_text(&s->work->choice, buf, FACT_BYTES);
    else if (strcmp(key, "rope") == 0)
        snprintf(buf, FACT_BYTES, "%s %s", rope_is_long(&hp->rope, o->n_ctx) ? "long" : "short",
                 rope_is_long(&hp->rope_swa, o->n_ctx) ? "long" : "short");
    else
        snprintf(buf, FACT_BYTES, "%s %s", mw_kv_name(o->kv_k), mw_kv_name(o->kv_v));
}

void saved_kv_head(const struct mw_session *s, struct kv_file_head *h)
{
    struct mw_model_info info;
    size_t used = 0;

    memset(h, 0, sizeof *h);
    mw_model_info(s->m, &info);
    snprintf(h->name, sizeof h->name, "%s", info.name);
    h->n_token = kv_tokens(s->kv);
    for (size_t i = 0; i < N_FACT; i++) {
        char value[FACT_BYTES];

        fact_value(s, fact_table[i].key, value);
        used += (size_t)snprintf(h->facts + used, sizeof h->facts - used, "%s %s\n",
                                 fact_table[i].key, value);
    }
}

_Static_assert(N_FACT *(FACT_BYTES + 16) <= KV_FILE_FACTS, "all facts fit a header");

const char *saved_kv_why_not(const struct kv_file_head *own, const struct kv_file_head *other)
{
    const char *a = own->facts, *b = other->facts;

    for (size_t i = 0; i < N_FACT; i++) {
        size_t n = strcspn(a, "\n") + 1;

        if (strncmp(a, b, n) != 0)
            return fact_table[i].why;
        a += n;
        b += n;
    }
    return b[0] == '\0' ? NULL : fact_table[0].why;
}

/* --- bytes --- */

int saved_kv_put(void *ctx, void *bytes, size_t n, struct err *e)
{
    return kv_file_write(ctx, bytes, n, e);
}

int saved_kv_take(void *ctx, void *bytes, size_t n, struct err *e)
{
    return kv_file_read(ctx, bytes, n, e);
}

static bool stops(void *ctx)
{
    const struct saved_kv_watch *w = ctx;

    session_between(w->s, true);
    return w->call->stops != NULL && w->call->stops(w->call->stops_ctx);
}

void saved_kv_watch(struct kv_file *f, struct saved_kv_watch *w)
{
    kv_file_set_stop(f, stops, w);
}

/* --- saving --- */

uint32_t saved_kv_entry(const struct tokens *t, uint32_t i)
{
    return t->id[i] | (t->in_tiles[i] ? IN_TILES : 0);
}

/* How many tokens of the file are those of the session, from the first one on.  A file that
 * cannot be read has none. */
static uint32_t count_same(struct mw_session *s, struct kv_file *f)
{
    const struct tokens *t = &s->tokens;
    uint32_t held = kv_tokens(s->kv), same = 0, old[ENTRIES];
    struct err ignored = ERR_INIT;
    struct tail tail;

    kv_file_seek(f, kv_file_parts(f) - 1);
    if (kv_file_read(f, &tail, sizeof tail, &ignored) != 0 || tail.n_token > tail.n_entry ||
        kv_file_parts(f) != kv_page_count(s->kv, tail.n_token) + 1)
        return 0;
    if (held > tail.n_token)
        held = tail.n_token;
    while (same < held) {
        uint32_t n = held - same < ENTRIES ? held - same : ENTRIES, i = 0;

        if (kv_file_read(f, old, n * sizeof *old, &ignored) != 0)
            return 0;
        while (i < n && old[i] == saved_kv_entry(t, same + i))
            i++;
        same += i;
        if (i < n)
            break;
    }
    return same;
}

/* The pages of the file that stay have only positions before `same`. */
static int save_pages(struct mw_session *s, struct kv_file *f, uint32_t same, struct err *e)
{
    uint32_t n = kv_tokens(s->kv), n_page = kv_page_count(s->kv, n);

    for (uint32_t i = 0; i < n_page; i++) {
        if ((i + 1) * KV_PAGE <= same) {
            if (kv_file_keep(f, i, e) != 0)
                return -1;
        } else if (kv_each_page(s->kv, i, n, saved_kv_put, f, e) != 0 ||
                   kv_file_end_part(f, e) != 0) {
            return -1;
        }
    }
    return 0;
}

static int save_entries(const struct mw_session *s, struct kv_file *f, struct err *e)
{
    for (uint32_t i = 0; i < s->tokens.n; i++) {
        uint32_t one = saved_kv_entry(&s->tokens, i);

        if (kv_file_write(f, &one, sizeof one, e) != 0)
            return -1;
    }
    return 0;
}

static int save_copies(const struct mw_session *s, struct kv_file *f, uint32_t n, struct err *e)
{
    uint32_t all = copies_count(s->copies);

    for (uint32_t i = all - n; i < all; i++) {
        uint32_t at = copies_at(s->copies, i);

        if (kv_file_write(f, &at, sizeof at, e) != 0 ||
            copies_each(s->copies, i, saved_kv_put, f, e) != 0)
            return -1;
    }
    return 0;
}

static int save_tail(struct mw_session *s, struct kv_file *f, const struct saved_kv_call *call,
                     struct err *e)
{
    uint32_t n_copy = copies_count(s->copies);
    struct tail tail = { .n_token = kv_tokens(s->kv),
                         .n_entry = s->tokens.n,
                         .ring_from = kv_ring_from(s->kv),
                         .n_copy = n_copy < COPIES ? n_copy : COPIES };

    if (kv_file_write(f, &tail, sizeof tail, e) != 0 || save_entries(s, f, e) != 0 ||
        kv_each_ring(s->kv, tail.ring_from, tail.n_token, saved_kv_put, f, e) != 0 ||
        kv_each_state(s->kv, saved_kv_put, f, e) != 0 || save_copies(s, f, tail.n_copy, e) != 0)
        return -1;
    if (call->save_notes != NULL && call->save_notes(call->notes_ctx, saved_kv_put, f, e) != 0)
        return -1;
    return kv_file_end_part(f, e);
}

static int check_size(const struct mw_session *s, uint64_t most, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);
    uint64_t bytes = kv_page_bytes_at(s->kv, held) + kv_sliding_bytes(s->kv) +
                     (1 + COPIES) * kv_copy_bytes_at(s->kv, held);
    char size[16], limit[16];

    if (most == 0 || bytes <= most)
        return 0;
    return err_set(e, ERR_BUDGET, "they take %s, and those of all chats may take %s",
                   units_size(size, sizeof size, bytes), units_size(limit, sizeof limit, most));
}

static int check_session(const struct mw_session *s, struct err *e)
{
    return s->work != NULL ? 0 : err_set(e, ERR_MEMORY, "the session has lost its workspace");
}

int session_save_kv(struct mw_session *s, const char *path, const struct saved_kv_call *call,
                    struct saved_kv *out, struct err *e)
{
    struct saved_kv_watch watch = { s, call };
    struct kv_file_head head;
    struct kv_file *f;
    uint32_t same = 0;
    int rc;

    *out = (struct saved_kv){ .n_token = 0 };
    if (check_session(s, e) != 0)
        return -1;
    session_drop_drafts(s);
    if (kv_tokens(s->kv) == 0)
        return 0;
    if (check_size(s, call->max_bytes, e) != 0 ||
        kv_file_change(&f, path, saved_kv_pieces(s->m, &s->settled.o), e) != 0)
        return -1;
    saved_kv_watch(f, &watch);
    saved_kv_head(s, &head);
    if (kv_file_parts(f) > 0 && saved_kv_why_not(&head, kv_file_head(f)) == NULL)
        same = count_same(s, f);
    kv_file_begin(f);
    rc = save_pages(s, f, same, e) != 0 || save_tail(s, f, call, e) != 0
             ? -1
             : kv_file_commit(f, &head, e);
    *out = (struct saved_kv){ .n_token = head.n_token, .bytes = kv_file_written(f) };
    kv_file_close(f);
    return rc;
}

/* --- loading --- */

static int refuse(const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s", what);
}

/* Take the ids: those that the session holds and those that it held before.  More than fit the
 * context are dropped. */
static int load_entries(struct mw_session *s, struct kv_file *f, uint32_t n, struct err *e)
{
    struct tokens *t = &s->tokens;
    uint32_t room = s->settled.o.n_ctx, got[ENTRIES];

    for (uint32_t at = 0; at < n; at += ENTRIES) {
        uint32_t part = n - at < ENTRIES ? n - at : ENTRIES;

        if (kv_file_read(f, got, part * sizeof *got, e) != 0)
            return -1;
        for (uint32_t i = 0; i < part && at + i < room; i++) {
            t->id[at + i] = got[i] & ~IN_TILES;
            t->in_tiles[at + i] = (got[i] & IN_TILES) != 0;
            if (t->id[at + i] >= s->m->desc->n_vocab)
                return refuse("an id is outside of the vocabulary", e);
        }
    }
    t->n = n < room ? n : room;
    return 0;
}

static int load_copies(struct mw_session *s, struct kv_file *f, const struct tail *tail,
                       struct err *e)
{
    uint32_t at, before = 0;

    for (uint32_t i = 0; i < tail->n_copy; i++) {
        if (kv_file_read(f, &at, sizeof at, e) != 0)
            return -1;
        if (at <= before || at > tail->n_token)
            return refuse("a copy is of no position", e);
        before = at;
        if (copies_fill(s->copies, at, saved_kv_take, f, e) != 0)
            return -1;
    }
    return 0;
}

bool saved_kv_has_own_ids(const struct mw_session *s, uint32_t n)
{
    const struct model_desc *d = s->m->desc;
    const struct ngram_hparams *g = &d->hp->ngram;
    const float *values;
    float *other;

    if (d->ngram_embd == NULL)
        return true;
    recurrent_others(kv_recurrent(s->kv), &values, &other);
    values += d->others.ngram_ids;
    for (uint32_t k = 0; k + 1 < g->n_token; k++)
        if (values[k] != (k < n ? (float)(s->tokens.id[n - 1 - k] + 1) : 0))
            return false;
    return true;
}

static int load_tail(struct mw_session *s, struct kv_file *f, uint32_t *ring_from,
                     const struct saved_kv_call *call, struct err *e)
{
    uint32_t n = kv_file_head(f)->n_token;
    struct tail tail;

    kv_file_seek(f, kv_file_parts(f) - 1);
    if (kv_file_read(f, &tail, sizeof tail, e) != 0)
        return -1;
    if (tail.n_token != n || tail.n_entry < n || tail.n_copy > COPIES ||
        tail.ring_from > kv_ring_needed(s->kv, n))
        return refuse("its parts contradict each other", e);
    *ring_from = tail.ring_from;
    if (load_entries(s, f, tail.n_entry, e) != 0 ||
        kv_each_ring(s->kv, tail.ring_from, n, saved_kv_take, f, e) != 0 ||
        kv_each_state(s->kv, saved_kv_take, f, e) != 0)
        return -1;
    if (!saved_kv_has_own_ids(s, n))
        return refuse("the state is of other tokens", e);
    if (load_copies(s, f, &tail, e) != 0)
        return -1;
    return call->load_notes == NULL ? 0 : call->load_notes(call->notes_ctx, saved_kv_take, f, e);
}

/* *n_good: the positions before the first damaged page. */
static int load_pages(struct mw_session *s, struct kv_file *f, uint32_t *n_good, struct err *e)
{
    uint32_t n = kv_file_head(f)->n_token, n_page = kv_page_count(s->kv, n);

    *n_good = n;
    for (uint32_t i = 0; i < n_page; i++) {
        kv_file_seek(f, i);
        if (kv_each_page(s->kv, i, n, saved_kv_take, f, e) == 0)
            continue;
        if (e->code != ERR_FORMAT)
            return -1;
        *n_good = i * KV_PAGE;
        *e = (struct err)ERR_INIT;
        break;
    }
    return 0;
}

void saved_kv_empty(struct mw_session *s)
{
    session_drop_drafts(s);
    s->drafts.n = s->drafts.n_pass = 0;
    s->has_logits = false;
    s->mark_at = s->beginning_at = 0;
    copies_cut(s->copies, 0);
    (void)kv_rewind(s->kv, 0);
    head_forget(s->head);
}

/* Hold nothing, and forget the ids of before. */
static void clear(struct mw_session *s)
{
    saved_kv_empty(s);
    tokens_clear(&s->tokens);
}

static int check_file(const struct mw_session *s, const struct kv_file *f, struct err *e)
{
    const struct kv_file_head *h = kv_file_head(f);
    struct kv_file_head own;
    const char *why;

    saved_kv_head(s, &own);
    why = saved_kv_why_not(&own, h);
    if (why != NULL)
        return err_set(e, ERR_ARGUMENT, "%s", why);
    if (h->n_token == 0 || kv_file_parts(f) != kv_page_count(s->kv, h->n_token) + 1)
        return refuse("its parts contradict each other", e);
    if (h->n_token > s->settled.o.n_ctx)
        return err_set(e, ERR_CONTEXT, "their %u tokens do not fit the context of %u",
                       h->n_token, s->settled.o.n_ctx);
    return 0;
}

/* Fill the session, which holds nothing. */
static int load(struct mw_session *s, struct kv_file *f, const struct saved_kv_call *call,
                uint32_t *n_good, struct err *e)
{
    uint32_t n = kv_file_head(f)->n_token, ring_from = n;
    int rc;

    if (settle_memory(s, n, e) != 0)
        return -1;
    kv_fill_begin(s->kv, n);
    rc = load_tail(s, f, &ring_from, call, e) != 0 ? -1 : load_pages(s, f, n_good, e);
    kv_fill_end(s->kv, n, ring_from);
    return rc;
}

int session_load_kv(struct mw_session *s, const char *path, const struct saved_kv_call *call,
                    struct saved_kv *out, struct err *e)
{
    struct saved_kv_watch watch = { s, call };
    struct err ignored = ERR_INIT;
    uint32_t n_good = 0, kept;
    bool is_damaged;
    struct kv_file *f;
    int rc = -1;

    *out = (struct saved_kv){ .n_token = 0 };
    if (check_session(s, e) != 0)
        return -1;
    if (kv_file_open(&f, path, saved_kv_pieces(s->m, &s->settled.o), e) != 0)
        return -1;
    saved_kv_watch(f, &watch);
    if (check_file(s, f, e) == 0) {
        clear(s);
        rc = load(s, f, call, &n_good, e);
        is_damaged = rc != 0 ? e->code == ERR_FORMAT : n_good < kv_tokens(s->kv);
        if (is_damaged) /* the next time it is saved, nothing of it stays */
            (void)kv_file_discard(f);
        if (rc != 0) {
            clear(s);
            (void)settle_memory(s, 0, &ignored); /* weights may use the space again */
        } else if (is_damaged) {
            rc = mw_session_rewind(s, n_good, &kept, e);
        }
        s->pass_end_ns = 0;
        publish_memory(s);
    }
    *out = (struct saved_kv){ .n_token = kv_tokens(s->kv), .bytes = kv_file_bytes_read(f) };
    kv_file_close(f);
    return rc;
}
