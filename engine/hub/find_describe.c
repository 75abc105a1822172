/* Figures from the headers of found models, and the plan made from them. */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/snapshot_index.h"
#include "engine/hub/find.h"
#include "engine/hub/find_record.h"
#include "engine/plan/factors.h"
#include "engine/plan/plan.h"
#include "engine/session/anchors.h"
#include "engine/session/model.h"
#include "engine/session/options.h"
#include "engine/session/packing.h"
#include "engine/session/plan_input.h"
#include "engine/stream/shape.h"

struct mw_describer {
    struct mw_options options;
    struct mw_describe_options how; /* its file is allocated */
    struct mw_machine machine;
    struct record_list records;
};

int mw_describer_new(struct mw_describer **out, const struct mw_options *o,
                     const struct mw_describe_options *how, struct err *e)
{
    struct mw_describer *d = calloc(1, sizeof *d);

    *out = NULL;
    if (d == NULL)
        return err_memory(e, "the descriptions of models");
    d->how = *how;
    if (how->file != NULL && (d->how.file = strdup(how->file)) == NULL) {
        free(d);
        return err_memory(e, "the descriptions of models");
    }
    mw_machine_read(&d->machine);
    mw_describer_set(d, o);
    if (how->file != NULL)
        record_list_read(&d->records, how->file);
    *out = d;
    return 0;
}

void mw_describer_set(struct mw_describer *d, const struct mw_options *o)
{
    d->options = *o;
    if (d->options.n_thread <= 0)
        d->options.n_thread = d->machine.n_thread;
}

void mw_models_undescribe(struct mw_models *m)
{
    for (size_t i = 0; i < m->n; i++)
        m->entries[i].found.is_described = false;
}

void mw_describer_free(struct mw_describer *d)
{
    if (d == NULL)
        return;
    if (d->how.file != NULL)
        record_list_write(&d->records, d->how.file);
    record_list_free(&d->records);
    free((char *)(uintptr_t)d->how.file);
    free(d);
}

static uint64_t budget_of(const struct mw_describer *d, const struct mw_options *o,
                          const struct plan_input *in)
{
    return o->memory_bytes > 0 ? o->memory_bytes
                               : plan_default_budget(in, d->machine.budget_bytes);
}

/* FNV-1a over the options that a plan input depends on, besides the budget.  Blocks have a size
 * that depends on the budget; if that is chosen from the free memory, is_valid() decides. */
static uint64_t hash_options(const struct mw_describer *d, const struct mw_options *o)
{
    size_t block = o->memory_bytes > 0 || o->block_bytes > 0 ? options_block(o) : 0;
    char text[200 + PATH_MAX];
    uint64_t hash = 0xcbf29ce484222325u;

    snprintf(text, sizeof text, "%u %d %d %d %d %d %d %d %d %zu %u %u %d %d %d %llu %d %d %d %s %s",
             o->n_ctx, (int)o->kv_k, (int)o->kv_v, o->io == MW_IO_MMAP, o->n_thread, o->exact,
             (int)o->blas, (int)o->pack, o->disk_rate > 0, block, o->chunk, o->n_logit_row,
             (int)o->draft, (int)o->draft_copies, d->how.needs_tokenizer,
             (unsigned long long)o->caller_bytes, o->saves_kv, (int)o->kv_disk, o->is_private,
             o->isa != NULL ? o->isa : "", o->draft_file != NULL ? o->draft_file : "");
    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

/* ---- reading headers ---- */

static bool begins_with(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* Skips the beginning of a sentence if it is this one. */
static const char *skip(const char *text, const char *beginning)
{
    size_t n = strlen(beginning);

    return strncmp(text, beginning, n) == 0 ? text + n : text;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* The place of an error: a field, or else a file in the folder that the list names. */
static const char *place_of(const char *path, const struct err *e)
{
    const char *base = base_of(e->file);

    return e->field[0] == '\0' && strcmp(base, base_of(path)) != 0 ? base : e->field;
}

/*
 * Write the reason as a list shows it, the point first, because a column may be narrow: without
 * the file, which the list names anyway, without the place if the sentence has a subject of its
 * own, and without the list of everything that memwall runs.
 */
static void write_reason(const char *path, struct record *r, const struct err *e)
{
    static const char *const verbs[] = { "is ",    "has ",   "ends ",   "contains ",
                                         "gives ", "names ", "shares ", "begins " };
    static const char *const subjects[] = { "a ",           "an ",    "the file ",
                                            "this ",        "these ", "the folder ",
                                            "weight type ", "file ",  "cannot open " };
    const char *what = skip(skip(e->what, "not a GGUF file but "), "the file is "), *rest;
    const char *field = place_of(path, e);
    char text[900], name[64];

    if (strncmp(e->what, "the file is cut off", 19) == 0)
        what = e->what;
    rest = what + strcspn(what, ";");
    if (sscanf(what, "architecture \"%63[^\"]\"", name) == 1)
        snprintf(text, sizeof text, "%s architecture", name);
    else if (field[0] == '\0' ||
             begins_with(what, subjects, sizeof subjects / sizeof subjects[0]))
        snprintf(text, sizeof text, "%s", what);
    else if (begins_with(what, verbs, sizeof verbs / sizeof verbs[0]))
        snprintf(text, sizeof text, "%s%s %s", strlen(field) > 20 ? "wrong value: " : "", field,
                 what);
    else
        snprintf(text, sizeof text, "%.*s (%s)%s", (int)(rest - what), what, field, rest);
    visible_line(r->why, sizeof r->why, text, strlen(text));
}

/* Why the folder of a snapshot reads and writes no text; NULL: it does.  A record does not cover a
 * tokenizer that is gone. */
static const char *no_tokenizer(const char *path)
{
    char file[PATH_MAX];
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) ||
        snprintf(file, sizeof file, "%s/" SNAPSHOT_TOKENIZER, path) >= (int)sizeof file ||
        stat(file, &st) == 0 || errno != ENOENT)
        return NULL;
    return lstat(file, &st) == 0
               ? SNAPSHOT_TOKENIZER " is a link to a file that is missing; fetch it again"
               : "the folder has no " SNAPSHOT_TOKENIZER;
}

static int check_text(const struct mw_describer *d, const char *path, struct mw_model *m,
                      struct err *e)
{
    return !d->how.needs_tokenizer || no_tokenizer(path) != NULL ? 0 : mw_model_check_text(m, e);
}

static void read_opened(const struct mw_describer *d, const char *path,
                        const struct mw_options *options, struct mw_model *m, struct record *r,
                        struct err *e)
{
    struct mw_options o = *options;
    struct mw_model_info info;
    struct err ignored = ERR_INIT;

    (void)packing_sample(m, &ignored); /* a file that ends after its headers has no sample */
    mw_model_info(m, &info);
    snprintf(r->arch, sizeof r->arch, "%s", info.arch);
    snprintf(r->type, sizeof r->type, "%s", info.type);
    r->n_ctx_train = info.n_ctx_train;
    r->n_param = info.n_param;
    if (o.memory_bytes == 0)
        o.memory_bytes = mw_default_budget(m, &o, d->machine.budget_bytes);
    r->sizes = (struct mw_read_sizes){ info.file_bytes, mw_read_bytes(m, &o) };
    if (check_text(d, path, m, e) == 0 && options_resolve(m, &o, e) == 0 &&
        plan_input_formula(m, &o, &r->input, e) == 0)
        r->runs = 1;
    else
        write_reason(path, r, e);
}

static void read_foreign(const char *path, struct record *r)
{
    struct err ignored = ERR_INIT;
    const struct summary *s;
    struct mw_inspect *i;

    if (mw_inspect_open(&i, path, &ignored) != 0)
        return;
    s = mw_inspect_summary(i);
    snprintf(r->arch, sizeof r->arch, "%s", s->arch);
    if (s->n_type > 0)
        snprintf(r->type, sizeof r->type, "%s", s->types[0].name);
    r->n_ctx_train = s->n_ctx_train;
    r->n_param = s->n_param;
    mw_inspect_close(i);
}

/* Returns false if the headers could not be read this time. */
static bool read_headers(const struct mw_describer *d, const char *path,
                         const struct mw_options *o, struct record *r)
{
    struct err e = ERR_INIT;
    struct mw_model *m;

    if (model_open_headers(&m, path, d->how.header_bytes, o->caller_bytes, &e) == 0) {
        read_opened(d, path, o, m, r, &e);
        mw_model_close(m);
        return r->runs != 0 || (e.code != ERR_IO && e.code != ERR_MEMORY);
    }
    write_reason(path, r, &e);
    if (e.code != ERR_UNSUPPORTED && e.code != ERR_FORMAT)
        return false;
    read_foreign(path, r);
    return true;
}

/* ---- records ---- */

/* Blocks have a size that depends on the budget, so a plan input holds for some budgets. */
static bool is_valid(const struct mw_describer *d, const struct mw_options *o,
                     const struct record *r)
{
    return r->runs == 0 ||
           shape_target(budget_of(d, o, &r->input)) == shape_target(r->input.budget_bytes);
}

/* Whether the files are still those that were found, so that they may be what was read. */
static bool is_unchanged(const struct find_entry *entry)
{
    struct find_id now;

    return find_identify_any(entry->found.path, &now) &&
           memcmp(&now, &entry->id, sizeof now) == 0;
}

/* Write what is known of a model with these options to *r; its headers are read if they never
 * were.  Returns false if they could not be read this time. */
static bool record_of(struct mw_describer *d, const struct find_entry *entry,
                      const struct mw_options *o, struct record *r)
{
    uint64_t options = hash_options(d, o);
    const struct record *known = record_find(&d->records, &entry->id, options);

    if (known != NULL && is_valid(d, o, known)) {
        *r = *known;
        return true;
    }
    memset(r, 0, sizeof *r);
    r->id = entry->id;
    r->options = options;
    if (!read_headers(d, entry->found.path, o, r))
        return false;
    if (is_unchanged(entry))
        record_add(&d->records, r);
    return true;
}

/* ---- the outlook ---- */

static void set_limits(const struct mw_limits *limits, const struct mw_options *o,
                       struct plan_input *in)
{
    struct mw_limits within = *limits;

    within.disk_bytes_s = limits_disk_within(limits->disk_bytes_s, o);
    plan_input_limits(in, &within);
}

/* Correct the formula as that of an open model is.  The anchor has its own options, and they
 * their own record. */
static void apply_anchor(struct mw_describer *d, const struct find_entry *entry,
                         const struct plan_anchor *kept, const struct mw_limits *limits,
                         struct plan_input *in)
{
    struct plan_anchor anchor = anchors_now(kept);
    struct mw_options o;
    struct record then;

    if (!anchors_hold(&anchor, &d->options))
        return;
    o = anchors_options(&anchor, &d->options);
    if (!record_of(d, entry, &o, &then) || then.runs == 0)
        return;
    set_limits(limits, &o, &then.input);
    anchors_correct(&anchor, &then.input, limits->disk_bytes_s, &d->options, in);
}

static void look_ahead(struct mw_describer *d, struct find_entry *entry, const struct record *r)
{
    struct mw_found *f = &entry->found;
    struct mw_limits limits = { 0 };
    struct plan_anchor anchor = { 0 };
    struct plan_input in = r->input;
    struct err e = ERR_INIT;

    plan_input_types(&in, &limits);
    plan_input_kv_folder(&in, &d->options);
    in.budget_bytes = budget_of(d, &d->options, &in);
    if (d->how.limits != NULL && d->how.limits(d->how.limits_ctx, f->path, &d->options,
                                               &r->sizes, &limits, &anchor)) {
        set_limits(&limits, &d->options, &in);
        apply_anchor(d, entry, &anchor, &limits, &in);
    }
    f->limits = limits;
    if (plan_make(&in, &f->plan, &e) != 0)
        f->fit = MW_FIT_TOO_LARGE;
    else
        f->fit = f->plan.streamed_bytes > 0 ? MW_FIT_STREAMS : MW_FIT_FITS;
}

void mw_describe(struct mw_describer *d, struct mw_models *m, size_t i)
{
    struct find_entry *entry = &m->entries[i];
    struct mw_found *f = &entry->found;
    const char *why;
    struct record r;

    if (f->is_described)
        return;
    f->fit = record_of(d, entry, &d->options, &r) ? MW_FIT_UNSUPPORTED : MW_FIT_UNKNOWN;
    memcpy(f->arch, r.arch, sizeof f->arch);
    memcpy(f->type, r.type, sizeof f->type);
    memcpy(f->why, r.why, sizeof f->why);
    f->n_ctx_train = r.n_ctx_train;
    f->n_param = r.n_param;
    if (r.runs != 0)
        look_ahead(d, entry, &r);
    why = no_tokenizer(f->path);
    if (d->how.needs_tokenizer && f->fit < MW_FIT_UNSUPPORTED && why != NULL) {
        f->fit = MW_FIT_UNSUPPORTED;
        snprintf(f->why, sizeof f->why, "%s", why);
    }
    f->is_described = true;
}
