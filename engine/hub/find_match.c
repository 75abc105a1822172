/* Models from the names that a user types: see find.h. */
#include "config.h"

#include <sys/stat.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/visible.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"
#include "engine/hub/repo.h"

#define LATEST       ":latest"
#define LONGEST_WORD 72 /* bytes of a name or path in a message */

/* A name in its parts: "ORG/" base ":" tag. */
struct parts {
    const char *whole, *base, *tag; /* tag: NULL if there is none */
    size_t n_whole, n_base;         /* n_whole: without ":latest" */
};

static struct parts parts_of(const char *name)
{
    struct parts p = { .whole = name, .n_whole = strlen(name), .base = name };
    size_t n_latest = strlen(LATEST), colon;

    if (p.n_whole > n_latest && strcasecmp(name + p.n_whole - n_latest, LATEST) == 0)
        p.n_whole -= n_latest;
    for (colon = 0; colon < p.n_whole && name[colon] != ':'; colon++)
        if (name[colon] == '/')
            p.base = name + colon + 1;
    p.n_base = (size_t)(name + colon - p.base);
    if (colon < p.n_whole)
        p.tag = name + colon + 1;
    return p;
}

static bool same(const char *a, size_t n, const char *b, size_t m)
{
    return n == m && strncasecmp(a, b, n) == 0;
}

static size_t without_ending(const char *file, size_t n)
{
    return n > 5 && strncasecmp(file + n - 5, ".gguf", 5) == 0 ? n - 5 : n;
}

/* Is text the path of a file in a repository, or its last part, with ".gguf" or without? */
static bool is_file(const char *file, const char *text, size_t n)
{
    const char *base = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;

    n = without_ending(text, n);
    return same(text, n, file, without_ending(file, strlen(file))) ||
           same(text, n, base, without_ending(base, strlen(base)));
}

/* Is the tag that was typed the one of this entry, its weight type, or its file? */
static bool is_tag(const struct find_entry *entry, const struct parts *typed,
                   const struct parts *own)
{
    size_t n;

    if (typed->tag == NULL)
        return true;
    n = (size_t)(typed->whole + typed->n_whole - typed->tag);
    if (own->tag != NULL &&
        same(typed->tag, n, own->tag, (size_t)(own->whole + own->n_whole - own->tag)))
        return true;
    if (same(typed->tag, n, entry->label, strlen(entry->label)))
        return true;
    return entry->file != NULL && is_file(entry->file, typed->tag, n);
}

/* The length of "ORG/base". */
static size_t n_repo(const struct parts *p)
{
    return (size_t)(p->base - p->whole) + p->n_base;
}

enum rule { RULE_NAME, RULE_NO_ORG, RULE_REPO, RULE_BASE, RULE_BEGIN, RULE_PART, RULES };

static bool meets(const struct find_entry *entry, const struct parts *typed, enum rule rule)
{
    struct parts own = parts_of(entry->found.name);
    bool has_org = typed->base != typed->whole;

    switch (rule) {
    case RULE_NAME: return same(typed->whole, typed->n_whole, own.whole, own.n_whole);
    case RULE_NO_ORG:
        return same(typed->whole, typed->n_whole, own.base,
                    (size_t)(own.whole + own.n_whole - own.base));
    case RULE_REPO:
        return same(typed->whole, n_repo(typed), own.whole, n_repo(&own)) &&
               is_tag(entry, typed, &own);
    case RULE_BASE:
        return !has_org && same(typed->base, typed->n_base, own.base, own.n_base) &&
               is_tag(entry, typed, &own);
    case RULE_BEGIN: {
        const char *begin = has_org ? own.whole : own.base;
        size_t n = n_repo(typed);

        return n > 0 && n <= (size_t)(own.base + own.n_base - begin) &&
               strncasecmp(typed->whole, begin, n) == 0 && is_tag(entry, typed, &own);
    }
    case RULE_PART: {
        size_t n = n_repo(typed), most = n_repo(&own);

        for (size_t at = 0; n > 0 && at + n <= most; at++)
            if (strncasecmp(own.whole + at, typed->whole, n) == 0 && is_tag(entry, typed, &own))
                return true;
        return false;
    }
    case RULES: break;
    }
    return false;
}

/* Are they names of one model?  Names of Ollama that share the weights may have other parts. */
static bool is_same(const struct find_entry *a, const struct find_entry *b)
{
    return memcmp(&a->id, &b->id, sizeof a->id) == 0 &&
           (a->found.manifest == NULL || b->found.manifest == NULL ||
            ollama_has_same_parts(a->found.manifest, b->found.manifest));
}

/* Two names of one model do not make a name ambiguous. */
static bool is_among(const struct mw_models *m, const struct find_entry *entry,
                     const size_t *found, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(&m->entries[found[i]], entry))
            return true;
    return false;
}

/* Set *is_part if only a part of their names meets the name. */
static size_t match(const struct mw_models *m, const char *name, size_t *found, size_t n,
                    bool *is_part)
{
    struct parts typed = parts_of(name);
    size_t n_found = 0;

    /* By each rule, first those that can be opened. */
    for (int round = 0; round < 2 * RULES && n_found == 0; round++) {
        enum rule rule = (enum rule)(round / 2);

        *is_part = rule >= RULE_BEGIN;
        for (size_t i = 0; i < m->n; i++)
            if (m->entries[i].is_broken == (round % 2 != 0) &&
                meets(&m->entries[i], &typed, rule) &&
                !is_among(m, &m->entries[i], found, n_found < n ? n_found : n)) {
                if (n_found < n)
                    found[n_found] = i;
                n_found++;
            }
    }
    return n_found;
}

size_t mw_models_match(const struct mw_models *m, const char *name, size_t *found, size_t n)
{
    bool unused;

    return match(m, name, found, n, &unused);
}

/* The share of pairs of letters that two texts have in common, from 0 to 1.  A changed, missing
 * or moved word costs little, which is how names of models are mistyped. */
static double similarity(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), common = 0;
    bool used[128] = { false };

    if (n < 2 || m < 2)
        return 0;
    for (size_t i = 0; i + 1 < n; i++)
        for (size_t j = 0; j + 1 < m && j < sizeof used; j++)
            if (!used[j] && strncasecmp(a + i, b + j, 2) == 0) {
                used[j] = true;
                common++;
                break;
            }
    return 2.0 * (double)common / (double)(n + m - 2);
}

/* Copy the letters and digits of name to buf[n], in lower case. */
static void squeeze(char *buf, size_t n, const char *name)
{
    size_t used = 0;

    for (; *name != '\0' && used + 1 < n; name++)
        if (isalnum((unsigned char)*name))
            buf[used++] = (char)tolower((unsigned char)*name);
    buf[used] = '\0';
}

/* Does a name begin like this one but for its signs?  "gemma4" begins like "gemma-4-E2B:Q4_0",
 * and so does "gemma4:e2b". */
static bool begins_alike(const char *typed, const char *name)
{
    char a[80], b[80];

    squeeze(a, sizeof a, typed);
    squeeze(b, sizeof b, name);
    return strlen(a) >= 3 && strncmp(a, b, strlen(a)) == 0;
}

size_t mw_models_similar(const struct mw_models *m, const char *name, size_t *found, size_t n)
{
    double best[16];
    size_t n_found = 0;

    if (n > sizeof best / sizeof best[0])
        n = sizeof best / sizeof best[0];
    for (size_t i = 0; i < m->n; i++) {
        struct parts own = parts_of(m->entries[i].found.name);
        double share = similarity(name, own.whole), without = similarity(name, own.base);
        size_t at;

        share = share > without ? share : without;
        if (share < 0.9 && begins_alike(name, own.whole))
            share = 0.9;
        if (share < 0.5)
            continue;
        for (at = n_found; at > 0 && best[at - 1] < share; at--)
            if (at < n) {
                best[at] = best[at - 1];
                found[at] = found[at - 1];
            }
        if (at < n) {
            best[at] = share;
            found[at] = i;
            n_found += n_found < n;
        }
    }
    return n_found;
}

static bool has_word(const struct mw_found *f, const char *word)
{
    return strcasestr(f->name, word) != NULL || strcasestr(f->arch, word) != NULL ||
           strcasestr(f->type, word) != NULL ||
           strcasestr(mw_store_name(f->store), word) != NULL;
}

bool mw_found_has(const struct mw_found *f, const char *filter)
{
    char word[64];

    for (;;) {
        size_t n;

        filter += strspn(filter, " ");
        n = strcspn(filter, " ");
        if (n == 0)
            return true;
        snprintf(word, sizeof word, "%.*s", (int)n, filter);
        if (!has_word(f, word))
            return false;
        filter += n;
    }
}

/* ---- a path or a name ---- */

/* Is it a path, although no file has it?  A name has no such beginning, and a name with the
 * ending of a file has a colon, or is an address of a hub. */
static bool is_path(const char *name)
{
    char at_hub[CACHE_MAX_REPO + CACHE_MAX_FILE + 2];
    size_t n = strlen(name);

    if (mw_hub_name(name, at_hub, sizeof at_hub))
        return false;

    return strchr("/.~", name[0]) != NULL ||
           (strchr(name, ':') == NULL &&
            (without_ending(name, n) < n || strstr(name, ".safetensors") != NULL));
}

static bool is_twin(const struct mw_models *m, const size_t *found, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (k != i &&
            strcmp(m->entries[found[k]].found.name, m->entries[found[i]].found.name) == 0)
            return true;
    return false;
}

/* Append a name or a path as ", "a"" unless it does not fit.  Returns the bytes used. */
static size_t add_word(char *text, size_t used, size_t size, const char *word)
{
    size_t n = strlen(word);
    char end[LONGEST_WORD + 4], clean[LONGEST_WORD + 4];

    /* Paths differ near their end. */
    if (n > LONGEST_WORD)
        snprintf(end, sizeof end, "...%s", word + n - (LONGEST_WORD - 3));
    else
        snprintf(end, sizeof end, "%s", word);
    visible_line(clean, sizeof clean, end, strlen(end));
    if (used + strlen(clean) + 8 > size)
        return used;
    return used +
           (size_t)snprintf(text + used, size - used, "%s\"%s\"", used > 0 ? ", " : "", clean);
}

/* Write names as "a", "b", as many as fit; of models with the same name, the paths. */
static void list_names(const struct mw_models *m, const size_t *found, size_t n, char *text,
                       size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const struct mw_found *f = &m->entries[found[i]].found;

        used = add_word(text, used, size, is_twin(m, found, n, i) ? f->path : f->name);
    }
}

static int refuse(const struct mw_models *m, const char *name, const size_t *found,
                  size_t n_found, struct err *e)
{
    size_t similar[3], n;
    char names[160];

    if (n_found > 0) {
        list_names(m, found, n_found < 8 ? n_found : 8, names, sizeof names);
        return err_set(e, ERR_ARGUMENT, "\"%.60s\" can be %zu models: %s", name, n_found,
                       names);
    }
    n = mw_models_similar(m, name, similar, 3);
    list_names(m, similar, n, names, sizeof names);
    err_set(e, ERR_IO, "no file or model is named \"%.60s\"%s%s%s", name,
            names[0] != '\0' ? "; did you mean " : "", names, names[0] != '\0' ? "?" : "");
    return -1;
}

static int resolve_name(const struct mw_places *places, const char *name, struct mw_models **m,
                        struct mw_found *to, bool *is_part, struct err *e)
{
    char at_hub[CACHE_MAX_REPO + CACHE_MAX_FILE + 2];
    size_t found[8], n_found;

    if (mw_models_find(m, places, e) != 0)
        return -1;
    n_found = match(*m, name, found, sizeof found / sizeof found[0], is_part);
    if (n_found == 0 && (mw_hub_name(name, at_hub, sizeof at_hub) ||
                         mw_ollama_name(name, at_hub, sizeof at_hub))) {
        name = at_hub;
        n_found = match(*m, name, found, sizeof found / sizeof found[0], is_part);
    }
    if (n_found != 1)
        return refuse(*m, name, found, n_found, e);
    *to = (*m)->entries[found[0]].found;
    if ((*m)->entries[found[0]].is_broken)
        return err_set(e, ERR_IO, "%.60s: %s", to->name, to->why);
    return 0;
}

/* "ORG/NAME/FILE" looks like a path.  Without such a file here, it can be one of the hub's
 * cache. */
static int resolve_file(const struct mw_places *places, const char *name, struct mw_models **m,
                        struct mw_found *to, struct err *e)
{
    char whole[CACHE_MAX_REPO + CACHE_MAX_FILE + 2];
    struct err ignored = ERR_INIT;
    bool is_part = false;
    struct repo r;
    size_t found;

    if (repo_parse(&r, name, NULL, NULL, &ignored) != 0 || r.variant[0] == '\0')
        return 0;
    snprintf(whole, sizeof whole, "%s:%s", r.name, r.variant);
    if (mw_models_find(m, places, e) != 0)
        return -1;
    if (match(*m, whole, &found, 1, &is_part) == 1 && !is_part)
        *to = (*m)->entries[found].found;
    return 0;
}

/* A path without the folder that it begins with.  find_add() leaves out a "./". */
static const char *below(const char *folder, const char *path)
{
    size_t n;

    if (strncmp(folder, "./", 2) == 0)
        folder += 2;
    n = strlen(folder);
    while (n > 0 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 ? path + n + strspn(path + n, "/") : path;
}

/* A folder that is not a snapshot stands for the one model in it.  Opening a folder without a
 * model reports what it is. */
static int resolve_folder(const char *folder, struct mw_models **m, struct mw_found *to,
                          struct err *e)
{
    char names[160];
    struct find_id id;
    size_t used = 0;

    if (find_identify(folder, &id))
        return 0;
    *m = calloc(1, sizeof **m);
    if (*m == NULL)
        return err_memory(e, "the models of a folder");
    if (find_folder(*m, folder, e) != 0)
        return -1;
    if ((*m)->n == 1) {
        *to = (*m)->entries[0].found;
        to->name = NULL; /* the folder was given, not a name */
    }
    if ((*m)->n <= 1)
        return 0;
    mw_models_sort(*m, MW_BY_NAME);
    names[0] = '\0';
    for (size_t i = 0; i < (*m)->n; i++)
        used = add_word(names, used, sizeof names, below(folder, (*m)->entries[i].found.path));
    err_set(e, ERR_ARGUMENT, "the folder has %zu models; name one of them: %s", (*m)->n, names);
    return err_at(e, folder, ERR_NO_OFFSET, NULL);
}

int mw_models_resolve(const struct mw_places *places, const char *name, char *path, size_t n,
                      struct mw_beside **beside, bool *is_part, struct err *e)
{
    struct mw_found to = { .path = name };
    struct mw_models *m = NULL;
    struct stat st;
    bool is_of_part = false;
    int rc = 0;

    if (beside != NULL)
        *beside = NULL;
    if (stat(name, &st) != 0)
        rc = is_path(name) ? resolve_file(places, name, &m, &to, e)
                           : resolve_name(places, name, &m, &to, &is_of_part, e);
    else if (S_ISDIR(st.st_mode))
        rc = resolve_folder(name, &m, &to, e);
    if (rc == 0 && (size_t)snprintf(path, n, "%s", to.path) >= n)
        rc = err_set(e, ERR_ARGUMENT, "the path of a model is longer than %zu bytes", n - 1);
    if (to.path == name)
        to.parts = find_parts(name);
    if (rc == 0 && beside != NULL)
        rc = mw_beside_read(beside, &to, e);
    if (is_part != NULL)
        *is_part = rc == 0 && is_of_part;
    mw_models_free(m);
    return rc;
}

/* ---- names that last ---- */

/* Can the path be one of the hub's cache? */
static bool is_in_hub(const struct mw_places *places, const char *path)
{
    for (size_t i = 0; i < places->n; i++) {
        const char *folder = places->place[i].folder;
        size_t n = strlen(folder);

        if (places->place[i].store == MW_STORE_HUB && strncmp(path, folder, n) == 0 &&
            path[n] == '/')
            return true;
    }
    return false;
}

/* Returns the model with the path that the name means, or else any with the path; NULL: none. */
static const struct mw_found *meant(const struct mw_models *m, const char *name,
                                    const char *path)
{
    size_t found[8], n;
    bool is_part;

    n = match(m, name, found, sizeof found / sizeof found[0], &is_part);
    for (size_t i = 0; i < n && i < sizeof found / sizeof found[0]; i++)
        if (strcmp(m->entries[found[i]].found.path, path) == 0)
            return &m->entries[found[i]].found;
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->entries[i].found.path, path) == 0)
            return &m->entries[i].found;
    return NULL;
}

/* Write the name that means the model of a store.  Returns false if there is none. */
static bool lasting_name(const struct mw_places *places, const char *name, const char *path,
                         char *buf, size_t n)
{
    struct err ignored = ERR_INIT;
    const struct mw_found *f;
    struct mw_models *m;
    size_t found;
    bool is_part, has;

    if (mw_models_find(&m, places, &ignored) != 0)
        return false;
    f = meant(m, name, path);
    has = f != NULL && (f->store == MW_STORE_HUB || f->manifest != NULL) &&
          match(m, f->name, &found, 1, &is_part) == 1 && !is_part &&
          (size_t)snprintf(buf, n, "%s", f->name) < n;
    mw_models_free(m);
    return has;
}

bool mw_models_lasting(const struct mw_places *places, const char *name, const char *path,
                       char *buf, size_t n)
{
    struct stat st;
    char *folder;
    bool fits;

    if ((stat(name, &st) != 0 || is_in_hub(places, path)) &&
        lasting_name(places, name, path, buf, n))
        return true;
    folder = path[0] == '/' ? NULL : realpath(".", NULL);
    fits = (path[0] == '/' || folder != NULL) &&
           (size_t)snprintf(buf, n, "%s%s%s", folder != NULL ? folder : "",
                            folder != NULL ? "/" : "", path) < n;
    free(folder);
    return fits;
}
