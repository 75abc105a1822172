/* See find.h. */
#include "config.h"

#include "engine/hub/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/numbers.h"

const char *mw_store_name(enum mw_store s)
{
    static const char *const names[] = {
        [MW_STORE_GUIDE] = "guide",
        [MW_STORE_MODELS] = "models",
        [MW_STORE_HUB] = "hub",
        [MW_STORE_OLLAMA] = "ollama",
        [MW_STORE_LM_STUDIO] = "lm-studio",
        [MW_STORE_LLAMA_CPP] = "llama.cpp",
        [MW_STORE_FOLDER] = "folder",
        [MW_STORE_RECENT] = "recent",
    };

    return names[s];
}

struct find_entry *find_same(const struct mw_models *m, const struct find_id *id)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].id.ino == id->ino && m->entries[i].id.dev == id->dev)
            return &m->entries[i];
    return NULL;
}

/* Ollama gives one file several names, and each is listed; elsewhere a second name is only
 * another way to the same file. */
static bool is_listed(const struct mw_models *m, const struct find_new *new)
{
    if (new->store != MW_STORE_OLLAMA)
        return find_same(m, &new->id) != NULL;
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].found.store == MW_STORE_OLLAMA &&
            strcmp(m->entries[i].found.name, new->name) == 0)
            return true;
    return false;
}

static bool grow(struct mw_models *m)
{
    size_t n = m->n_room == 0 ? 64 : m->n_room * 2;
    struct find_entry *more;

    if (m->n < m->n_room)
        return true;
    more = realloc(m->entries, n * sizeof *more);
    if (more == NULL)
        return false;
    m->entries = more;
    m->n_room = n;
    return true;
}

void find_drop(struct find_entry *entry)
{
    free((char *)(uintptr_t)entry->found.name);
    free((char *)(uintptr_t)entry->found.path);
    free((char *)(uintptr_t)entry->found.manifest);
    free(entry->file);
}

int find_add(struct mw_models *m, const struct find_new *new, struct err *e)
{
    struct find_entry entry = { .id = new->id };
    const char *path = new->path;

    if (strncmp(path, "./", 2) == 0)
        path += 2;
    if (m->n == FIND_MAX || is_listed(m, new))
        return 0;
    entry.found = (struct mw_found){ .name = strdup(new->name),
                                     .path = strdup(path),
                                     .store = new->store,
                                     .parts = new->parts,
                                     .file_bytes = new->id.bytes,
                                     .changed_s = new->id.mtime_ns / 1000000000 };
    if (new->file != NULL)
        entry.file = strdup(new->file);
    if (new->manifest != NULL)
        entry.found.manifest = strdup(new->manifest);
    if (new->broken != NULL) {
        entry.is_broken = entry.found.is_described = true;
        entry.found.fit = MW_FIT_UNKNOWN;
        snprintf(entry.found.why, sizeof entry.found.why, "%s", new->broken);
    }
    if (new->label != NULL)
        memcpy(entry.label, new->label, strlen(new->label) + 1);
    if (entry.found.name == NULL || entry.found.path == NULL ||
        (new->file != NULL &&entry.file == NULL) ||
        (new->manifest != NULL &&entry.found.manifest == NULL) || !grow(m)) {
        find_drop(&entry);
        return err_memory(e, "the list of models");
    }
    m->entries[m->n++] = entry;
    return 0;
}

/* The depth of folders in which a store keeps files. */
static unsigned depth_of(enum mw_store store)
{
    switch (store) {
    case MW_STORE_GUIDE: return 0;
    case MW_STORE_LLAMA_CPP: return 0;
    case MW_STORE_FOLDER: return 1;
    case MW_STORE_LM_STUDIO: return 3; /* PUBLISHER/MODEL/FILE */
    default: return 4;
    }
}

static int find_place(struct mw_models *m, const struct mw_place *p, struct err *e)
{
    switch (p->store) {
    case MW_STORE_HUB: return find_hub(m, p->folder, e);
    case MW_STORE_OLLAMA: return find_ollama(m, p->folder, e);
    default: return find_walk(m, p->store, p->folder, NULL, depth_of(p->store), e);
    }
}

int mw_models_find(struct mw_models **out, const struct mw_places *places, struct err *e)
{
    struct mw_models *m = calloc(1, sizeof *m);
    int rc = 0;

    *out = NULL;
    if (m == NULL)
        return err_memory(e, "the list of models");
    for (size_t i = 0; i < places->n && rc == 0; i++)
        rc = find_place(m, &places->place[i], e);
    if (rc == 0 && places->recent != NULL)
        rc = find_recent(m, places->recent, e);
    if (rc != 0) {
        mw_models_free(m);
        return -1;
    }
    mw_models_sort(m, MW_BY_NAME);
    *out = m;
    return 0;
}

void mw_models_free(struct mw_models *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n; i++)
        find_drop(&m->entries[i]);
    free(m->entries);
    free(m);
}

size_t mw_models_count(const struct mw_models *m)
{
    return m->n;
}

const struct mw_found *mw_models_at(const struct mw_models *m, size_t i)
{
    return &m->entries[i].found;
}

const struct mw_found *mw_models_of(const struct mw_models *m, const char *path)
{
    const struct find_entry *entry = NULL;
    struct find_id id;

    if (find_identify_any(path, &id))
        entry = find_same(m, &id);
    return entry != NULL ? &entry->found : NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct mw_found *x = a, *y = b;
    int order = strcasecmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->path, y->path);
}

static int by_size(const void *a, const void *b)
{
    const struct mw_found *x = a, *y = b;

    if (x->file_bytes != y->file_bytes)
        return x->file_bytes < y->file_bytes ? 1 : -1;
    return by_name(a, b);
}

static int by_use(const void *a, const void *b)
{
    const struct mw_found *x = a, *y = b;

    if (x->used_s != y->used_s)
        return x->used_s < y->used_s ? 1 : -1;
    if (x->changed_s != y->changed_s)
        return x->changed_s < y->changed_s ? 1 : -1;
    return by_name(a, b);
}

_Static_assert(offsetof(struct find_entry, found) == 0, "entries are compared as found models");

void mw_models_sort(struct mw_models *m, enum mw_models_order order)
{
    static int (*const compare[])(const void *a, const void *b) = {
        [MW_BY_NAME] = by_name, [MW_BY_SIZE] = by_size, [MW_BY_USE] = by_use
    };

    if (m->n > 0)
        qsort(m->entries, m->n, sizeof m->entries[0], compare[order]);
}

void mw_fit_text(const struct mw_found *f, char *buf, size_t n)
{
    char size[16], rate[24], need[16], parts[64];

    units_size(size, sizeof size, f->plan.budget_bytes);
    numbers_rough(rate, sizeof rate, f->plan.decode_tps);
    if (f->plan.is_doubtful)
        strcat(rate, "?");
    /* First, because a narrow terminal cuts the end. */
    if ((f->parts & MW_PARTS_LOST) != 0 && f->fit < MW_FIT_UNSUPPORTED) {
        size_t used =
            (size_t)snprintf(buf, n, "%s not applied; ",
                             mw_parts_text(f->parts & MW_PARTS_LOST, parts, sizeof parts));

        if (used >= n)
            return;
        buf += used;
        n -= used;
    }
    switch (f->fit) {
    case MW_FIT_FITS:
        snprintf(buf, n, f->plan.decode_tps > 0 ? "fits, about %s tok/s" : "fits", rate);
        break;
    case MW_FIT_STREAMS:
        if (f->plan.decode_tps > 0)
            snprintf(buf, n, "streams, about %s tok/s in %s", rate, size);
        else
            snprintf(buf, n, "streams in %s", size);
        break;
    case MW_FIT_TOO_LARGE:
        snprintf(buf, n, "too large: needs %s, the budget is %s",
                 units_size(need, sizeof need, f->plan.sum_bytes), size);
        break;
    case MW_FIT_UNSUPPORTED: snprintf(buf, n, "unsupported: %s", f->why); break;
    case MW_FIT_UNKNOWN: snprintf(buf, n, "not read: %s", f->why); break;
    }
    if (f->fit > MW_FIT_STREAMS || !(f->plan.decode_tps > 0))
        return;
    if (f->plan.assumed > 0 && strlen(buf) < n)
        snprintf(buf + strlen(buf), n - strlen(buf), " if %.0f %% of the drafts are right",
                 100 * f->plan.assumed);
    if (f->fit == MW_FIT_STREAMS && f->plan.n_expert_all > 0 && !f->plan.hits_measured &&
        strlen(buf) < n)
        snprintf(buf + strlen(buf), n - strlen(buf), "; even use of experts is assumed");
}
