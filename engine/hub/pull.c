/* Models of a repository: listed, described, fetched. */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/format/arch.h"
#include "engine/format/vocab.h"
#include "engine/hub/pull_blob.h"
#include "engine/hub/pull_folder.h"
#include "engine/hub/pull_header.h"
#include "engine/hub/pull_nothing.h"
#include "engine/hub/pull_place.h"
#include "engine/hub/pull_variant.h"
#include "engine/hub/repo_elsewhere.h"
#include "engine/memwall.h"

struct mw_pull {
    struct mw_hub hub;
    struct http *http;
    char *endpoint, *cache, *temp;
    bool has_token;
    struct repo repo;
    struct pull_list list;
    struct pull_variants variants;
    struct mw_pull_variant *shown; /* [variants.n] */
    struct pull_place place;
    struct pull_header header; /* of the first GGUF model that was described */
    uint32_t header_of;        /* its variant */
    uint64_t header_left;
    void (*on_notice)(void *ctx, const char *text);
    void *ctx;
    bool said_locks, said_links;
    struct mw_pull *head; /* the repository with the head of a snapshot; NULL: none was found */
    uint32_t head_of, head_at; /* the snapshot, and the variant there */
};

bool mw_hub_name(const char *text, char *buf, size_t n)
{
    struct err ignored = ERR_INIT;
    struct repo r;

    if (repo_parse(&r, text, NULL, NULL, &ignored) != 0 || r.is_plain)
        return false;
    /* The files of a snapshot are one model, which has the name of the repository. */
    if (find_ends_in(r.variant, ".safetensors") || find_ends_in(r.variant, ".json"))
        r.variant[0] = '\0';
    return snprintf(buf, n, "%s%s%s", r.name, r.variant[0] != '\0' ? ":" : "", r.variant) <
           (int)n;
}

bool mw_ollama_name(const char *text, char *buf, size_t n)
{
    return repo_ollama_name(text, buf, n);
}

/* ---- the list ---- */

static void show_variants(struct mw_pull *p)
{
    for (uint32_t i = 0; i < p->variants.n; i++) {
        const struct pull_variant *c = &p->variants.all[i];
        struct mw_pull_variant *s = &p->shown[i];

        s->label = c->folder != NULL ? "" : c->label;
        s->file = c->folder != NULL ? c->folder : p->list.files[c->files[0]].name;
        s->is_snapshot = c->is_snapshot;
        s->n_file = c->n_file;
        s->bytes = c->bytes;
        if (c->head != UINT32_MAX) {
            s->head = p->list.files[c->head].name;
            s->head_bytes = p->list.files[c->head].size;
        } else if (c->left_head != UINT32_MAX) {
            s->left_head = p->list.files[c->left_head].name;
            s->left_why = p->list.files[c->left_head].size > c->bytes / PULL_HEAD_SHARE
                              ? "it is larger than 1/8 of the model"
                              : "it is in several files";
        }
        for (uint32_t k = 0; k < c->n_file; k++)
            s->have_bytes += pull_place_have(&p->place, &p->list.files[c->files[k]]);
    }
}

static bool make_url(const struct mw_pull *p, const struct pull_file *f, char *url, size_t n)
{
    int len = snprintf(url, n, "%s/%s/resolve/%s/", p->endpoint, p->repo.name, p->list.commit);

    return len > 0 && (size_t)len < n && repo_append_url(url, n, f->name, true);
}

/* A file whose header is fetched; url is filled in before it is. */
static struct pull_remote remote_of(struct mw_pull *p, const struct pull_file *f, const char *url)
{
    return (struct pull_remote){ .http = p->http,
                                 .url = url,
                                 .size = f->size,
                                 .left = &p->header_left,
                                 .endpoint = p->endpoint,
                                 .repo = &p->repo,
                                 .has_token = p->has_token };
}

/* ---- files of the hub that decide what a model is ---- */

static int read_index(void *ctx, uint32_t file, struct shard_list *s, struct err *e)
{
    struct mw_pull *p = ctx;
    const struct pull_file *f = &p->list.files[file];
    char url[HTTP_URL_MAX], *text;
    struct pull_remote r = remote_of(p, f, url);
    int rc;

    if (!make_url(p, f, url, sizeof url))
        return err_set(e, ERR_ARGUMENT, "\"%.100s\" is too long", f->name);
    rc = pull_header_text(&r, &text, e);
    if (rc == 0)
        rc = snapshot_index_parse(s, text, f->size, e);
    else
        err_at(e, f->name, ERR_NO_OFFSET, NULL);
    free(text);
    return rc;
}

static int is_model(void *ctx, uint32_t file, bool *is, struct err *e)
{
    struct mw_pull *p = ctx;
    const struct pull_file *f = &p->list.files[file];
    char url[HTTP_URL_MAX];
    struct pull_remote r = remote_of(p, f, url);

    *is = false;
    if (!make_url(p, f, url, sizeof url))
        return err_set(e, ERR_ARGUMENT, "\"%.100s\" is too long", f->name);
    return pull_header_kind(&r, is, e) == 0 ? 0 : err_at(e, f->name, ERR_NO_OFFSET, NULL);
}

static int list_models(struct mw_pull *p, struct err *e)
{
    const struct pull_look look = { read_index, is_model, p };

    if (pull_list_get(&p->list, p->http, p->endpoint, &p->repo, p->has_token, e) != 0 ||
        pull_variants_make(&p->variants, &p->list, &look, e) != 0)
        return -1;
    if (p->variants.n == 0)
        return pull_nothing(p->repo.name, &p->list, &p->variants, e);
    p->shown = calloc(p->variants.n, sizeof *p->shown);
    if (p->shown == NULL)
        return err_memory(e, "a list of %u models", p->variants.n);
    p->place = (struct pull_place){ p->cache, &p->repo, p->list.commit };
    show_variants(p);
    return 0;
}

/* *lacks is what the hub does not have, if this fails. */
static int open_repo(struct mw_pull **out, const struct mw_hub *hub, const char *repo,
                     const char *revision, enum pull_lack *lacks, struct err *e)
{
    struct mw_pull *p = calloc(1, sizeof *p);
    static const struct http_words words = {
        .setting = "HF_ENDPOINT",
        .server = "a hub",
        .that = "the hub",
        .example = "https://huggingface.co",
        .token = "HF_TOKEN or the file with the token",
        .trust = "set SSL_CERT_FILE to your company's certificate",
    };
    struct http_options o = { .words = &words,
                              .endpoint = hub->endpoint,
                              .token = hub->token,
                              .stop_fd = hub->stop_fd,
                              .ca_folder = hub->ca_folder,
                              .on_wait = hub->on_wait,
                              .ctx = hub->ctx };

    _Static_assert(HTTP_CA_FILES == MW_CA_FILES, "the same files");
    memcpy(o.ca_files, hub->ca_files, sizeof o.ca_files);
    *out = NULL;
    *lacks = PULL_LACKS_NOTHING;
    if (p == NULL)
        return err_memory(e, "a list of models");
    p->endpoint = strdup(hub->endpoint);
    p->cache = strdup(hub->cache);
    p->temp = strdup(hub->temp);
    p->has_token = hub->token != NULL && hub->token[0] != '\0';
    p->header_left = PULL_HEADERS;
    p->hub = *hub;
    p->on_notice = hub->on_notice;
    p->ctx = hub->ctx;
    if (p->endpoint == NULL || p->cache == NULL || p->temp == NULL)
        err_memory(e, "a list of models");
    else if (repo_parse(&p->repo, repo, revision, p->endpoint, e) == 0 &&
             http_open(&p->http, &o, e) == 0 && list_models(p, e) == 0) {
        *out = p;
        return 0;
    }
    *lacks = p->list.lacks;
    mw_pull_close(p);
    return -1;
}

int mw_pull_open(struct mw_pull **out, const struct mw_hub *hub, const char *repo,
                 const char *revision, struct err *e)
{
    enum pull_lack ignored;

    return open_repo(out, hub, repo, revision, &ignored, e);
}

void mw_pull_close(struct mw_pull *p)
{
    if (p == NULL)
        return;
    mw_pull_close(p->head);
    pull_header_free(&p->header);
    pull_variants_free(&p->variants);
    pull_list_free(&p->list);
    http_close(p->http);
    free(p->shown);
    free(p->endpoint);
    free(p->cache);
    free(p->temp);
    free(p);
}

void mw_pull_info(const struct mw_pull *p, struct mw_pull_info *out)
{
    *out = (struct mw_pull_info){
        .repo = p->repo.name,
        .revision = p->repo.revision,
        .commit = p->list.commit,
        .variant = p->repo.variant,
        .free_bytes = pull_place_free(&p->place),
        .n_unsafe = p->list.n_unsafe,
        .n_broken = p->variants.n_broken,
    };
}

size_t mw_pull_count(const struct mw_pull *p)
{
    return p->variants.n;
}

const struct mw_pull_variant *mw_pull_at(const struct mw_pull *p, size_t i)
{
    return &p->shown[i];
}

size_t mw_pull_match(const struct mw_pull *p, const char *text, size_t *first)
{
    uint32_t found = 0;
    uint32_t n = pull_variants_match(&p->variants, &p->list, text, &found);

    *first = found;
    return n;
}

const char *mw_pull_broken(const struct mw_pull *p, size_t i)
{
    return i < PULL_BROKEN ? p->variants.broken[i] : NULL;
}

/* ---- descriptions ---- */

/* Is another header of the same model there?  Its files have the same name but for the type. */
static struct pull_header *known_header(struct mw_pull *p, uint32_t variant)
{
    const struct pull_variant *c = &p->variants.all[variant],
                              *k = &p->variants.all[p->header_of];
    const char *own = p->list.files[c->files[0]].name;
    const char *known = p->list.files[k->files[0]].name;

    if (c->n_file > 1)
        return NULL;
    if (p->header.bytes == NULL)
        p->header_of = variant;
    else if (c->n_stem != k->n_stem || strncmp(own, known, c->n_stem) != 0)
        return NULL;
    return &p->header;
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash != NULL ? slash + 1 : name;
}

/* Vocabularies are large, and no plan needs them. */
static bool is_for_plan(const char *name)
{
    return find_ends_in(name, ".gguf") || find_ends_in(name, ".safetensors") ||
           find_ends_in(name, ".index.json") || strcmp(name, "config.json") == 0;
}

static int fetch_headers(struct mw_pull *p, uint32_t variant, const char *folder, struct err *e)
{
    const struct pull_variant *c = &p->variants.all[variant];
    char url[HTTP_URL_MAX], path[PULL_PATH_MAX];

    for (uint32_t i = 0; i < c->n_file; i++) {
        const struct pull_file *f = &p->list.files[c->files[i]];
        struct pull_remote r = remote_of(p, f, url);
        int rc;

        if (c->is_snapshot && !is_for_plan(base_of(f->name)))
            continue;
        if (!make_url(p, f, url, sizeof url) ||
            snprintf(path, sizeof path, "%s/%s", folder, base_of(f->name)) >= (int)sizeof path)
            return err_set(e, ERR_ARGUMENT, "\"%.100s\" is too long", f->name);
        if (!c->is_snapshot)
            rc = pull_header_gguf(&r, path, known_header(p, variant), e);
        else if (find_ends_in(f->name, ".safetensors"))
            rc = pull_header_safetensors(&r, path, e);
        else
            rc = pull_header_all(&r, path, e);
        if (rc != 0)
            return err_at(e, f->name, ERR_NO_OFFSET, NULL);
    }
    return 0;
}

/* Describe the model in the folder like any other on this machine. */
static int describe(struct mw_pull_variant *s, struct mw_describer *d, const char *folder,
                    struct err *e)
{
    const struct mw_place place = { MW_STORE_FOLDER, folder };
    const struct mw_places places = { .place = &place, .n = 1 };
    struct mw_models *models;

    if (mw_models_find(&models, &places, e) != 0)
        return -1;
    if (mw_models_count(models) == 1) {
        mw_describe(d, models, 0);
        s->model = *mw_models_at(models, 0);
        s->model.name = s->model.path = NULL;
        s->is_described = true;
    } else if (find_is_head_folder(folder)) {
        err_set(e, ERR_FORMAT, "it is a draft head, which is fetched with its model");
    } else {
        err_set(e, ERR_FORMAT, "the headers are not those of a model");
    }
    mw_models_free(models);
    return s->is_described ? 0 : -1;
}

/* A snapshot without a tokenizer can be planned, but neither reads nor writes text. */
static void describe_tokenizer(struct mw_pull_variant *s)
{
    s->model.fit = MW_FIT_UNSUPPORTED;
    snprintf(s->model.why, sizeof s->model.why, "the repository has no " SNAPSHOT_TOKENIZER);
}

/* Describe a model from headers in a folder of their own. */
static int describe_from(struct mw_pull *p, uint32_t i, struct mw_describer *d, struct err *e)
{
    struct pull_folder folder;
    int rc;

    if (pull_folder_make(&folder, p->temp, e) != 0)
        return -1;
    rc = fetch_headers(p, i, folder.path, e);
    if (rc == 0)
        rc = describe(&p->shown[i], d, folder.path, e);
    pull_folder_remove(&folder);
    if (rc == 0 && p->shown[i].is_snapshot && !p->variants.all[i].has_tokenizer)
        describe_tokenizer(&p->shown[i]);
    return rc;
}

/* Publishers keep the assistant of ORG/NAME in ORG/NAME-assistant. */
#define HEAD_REPO "-assistant"

static bool has_assistants(const char *arch)
{
    char name[64];

    snprintf(name, sizeof name, "%s" HEAD_REPO, arch);
    return arch_assistant_by_name(name) != NULL;
}

/* Is it a draft head that --draft auto would use? */
static bool is_head_for(const struct pull_variant *head, const struct pull_variant *model)
{
    return head->is_snapshot && head->folder == NULL &&
           head->bytes <= model->bytes / PULL_HEAD_SHARE;
}

static void notice_of_head(const struct mw_pull *p, const char *what, const struct err *why)
{
    char reason[300], text[400];

    err_text(why, reason, sizeof reason);
    snprintf(text, sizeof text, "the draft head %s: %s", what, reason);
    if (p->on_notice != NULL)
        p->on_notice(p->ctx, text);
}

/* Open the repository of the head at the revision of the model, or, since other heads only draft
 * worse, at the main one. */
static int open_head(struct mw_pull *p, const char *name, enum pull_lack *lacks, struct err *e)
{
    char text[400];

    if (open_repo(&p->head, &p->hub, name, p->repo.revision, lacks, e) == 0)
        return 0;
    if (*lacks != PULL_LACKS_REVISION)
        return -1;
    *e = (struct err)ERR_INIT;
    if (open_repo(&p->head, &p->hub, name, NULL, lacks, e) != 0)
        return -1;
    snprintf(text, sizeof text, "%.100s has no revision \"%.60s\": the draft head is that of %.60s",
             name, p->repo.revision, p->head->repo.revision);
    if (p->on_notice != NULL)
        p->on_notice(p->ctx, text);
    return 0;
}

/* Look for the draft head of a snapshot.  Returns -1 with *e only if the user wants to stop. */
static int find_head(struct mw_pull *p, uint32_t i, struct err *e)
{
    struct mw_pull_variant *s = &p->shown[i];
    char name[CACHE_MAX_REPO + sizeof HEAD_REPO];
    enum pull_lack lacks;
    struct err why = ERR_INIT;

    if (!s->is_snapshot || p->variants.all[i].folder != NULL || p->head != NULL ||
        !has_assistants(s->model.arch))
        return 0;
    snprintf(name, sizeof name, "%s" HEAD_REPO, p->repo.name);
    if (!cache_is_repo(name))
        return 0;
    if (open_head(p, name, &lacks, &why) != 0) {
        if (why.code == ERR_CANCELLED) {
            *e = why;
            return -1;
        }
        if (lacks != PULL_LACKS_REPO) /* most models have none */
            notice_of_head(p, "is left out", &why);
        return 0;
    }
    for (uint32_t k = 0; k < p->head->variants.n && s->head == NULL; k++)
        if (is_head_for(&p->head->variants.all[k], &p->variants.all[i])) {
            p->head_of = i;
            p->head_at = k;
            s->head = p->head->repo.name;
            s->head_bytes = p->head->variants.all[k].bytes;
        }
    if (s->head == NULL) {
        err_set(&why, ERR_UNSUPPORTED,
                "%.100s has no snapshot with at most 1/%d of the bytes of the model", name,
                PULL_HEAD_SHARE);
        notice_of_head(p, "is left out", &why);
    }
    return 0;
}

int mw_pull_describe(struct mw_pull *p, size_t i, struct mw_describer *d, struct err *e)
{
    struct mw_pull_variant *s = &p->shown[i];
    struct err why = ERR_INIT;

    if (s->is_described)
        return 0;
    if (describe_from(p, (uint32_t)i, d, &why) == 0)
        return find_head(p, (uint32_t)i, e);
    snprintf(s->why, sizeof s->why, "%.*s", (int)sizeof s->why - 1, why.what);
    if (why.code == ERR_FORMAT) {
        s->model.fit = MW_FIT_UNSUPPORTED;
        memcpy(s->model.why, s->why, sizeof s->model.why);
        s->is_described = true;
    }
    if (why.code != ERR_CANCELLED)
        return 0;
    *e = why;
    return -1;
}

/* ---- fetching ---- */

/* Check a file, and add the bytes that are not on the disk yet to *need. */
static int check_file(const struct mw_pull *p, const struct pull_file *f, uint64_t *need,
                      struct err *e)
{
    if (f->etag[0] == '\0') {
        err_set(e, ERR_UNSUPPORTED, "the hub reports no hash of its content to check");
        return err_at(e, f->name, ERR_NO_OFFSET, NULL);
    }
    if (f->size > pull_place_most(&p->place)) {
        err_set(e, ERR_IO,
                "the disk is formatted as FAT, which takes no file of 4 GiB or more; set "
                "HF_HOME to a folder on another disk");
        return err_at(e, f->name, ERR_NO_OFFSET, NULL);
    }
    *need += f->size - pull_place_have(&p->place, f);
    return 0;
}

/* Is a draft head fetched with the model from a repository of its own? */
static bool has_other_head(const struct mw_pull *p, uint32_t i)
{
    return p->head != NULL && p->head_of == i && p->shown[i].head != NULL;
}

/* The same for all files of a model and its head. */
static int check_files(const struct mw_pull *p, uint32_t i, uint64_t *need, struct err *e)
{
    const struct pull_variant *c = &p->variants.all[i];

    for (uint32_t k = 0; k < c->n_file; k++)
        if (check_file(p, &p->list.files[c->files[k]], need, e) != 0)
            return -1;
    if (c->head != UINT32_MAX && check_file(p, &p->list.files[c->head], need, e) != 0)
        return -1;
    return has_other_head(p, i) ? check_files(p->head, p->head_at, need, e) : 0;
}

static int check_space(const struct mw_pull *p, uint32_t i, struct err *e)
{
    uint64_t need = 0, free_bytes = pull_place_free(&p->place);
    char a[16], b[16];

    if (check_files(p, i, &need, e) != 0)
        return -1;
    if (need <= free_bytes)
        return 0;
    err_set(e, ERR_IO,
            "%s are needed, and %s are free; make space, or set HF_HOME to a folder on a "
            "larger disk",
            units_size(a, sizeof a, need), units_size(b, sizeof b, free_bytes));
    return err_at(e, p->cache, ERR_NO_OFFSET, NULL);
}

struct relay {
    struct mw_pull_progress shown;
    uint64_t before; /* of the files that are complete */
    mw_pull_fn *fn;
    void *ctx;
};

static void on_progress(void *ctx, const struct pull_progress *p)
{
    struct relay *r = ctx;

    r->shown.file = p->file->name;
    r->shown.is_checking = p->is_checking;
    r->shown.done = r->before + p->done;
    r->fn(r->ctx, &r->shown);
}

/* Say once that the file system of the cache lacks something. */
static void notice(struct mw_pull *p, bool *said, const char *text)
{
    if (!*said && p->on_notice != NULL)
        p->on_notice(p->ctx, text);
    *said = true;
}

static int fetch_file(struct mw_pull *p, const struct pull_file *f, struct relay *r,
                      struct err *e)
{
    char url[HTTP_URL_MAX], path[PULL_PATH_MAX], incomplete[PULL_PATH_MAX];
    struct pull_blob b = { p->http, url, f, path, incomplete, on_progress, r };
    struct http_reply reply;
    bool is_locked;
    int rc = 0, lock;

    if (!make_url(p, f, url, sizeof url))
        return err_set(e, ERR_ARGUMENT, "\"%.100s\" is too long", f->name);
    if (pull_place_blob(&p->place, f, path, incomplete, e) != 0)
        return -1;
    lock = pull_place_lock(&p->place, f, &is_locked, e);
    if (lock < 0)
        return -1;
    if (!is_locked)
        notice(p, &p->said_locks,
               "the disk of the cache has no locks: let no other program fetch this model now");
    /* Another program may have fetched it meanwhile. */
    if (!pull_place_has(&p->place, f))
        rc = pull_blob(&b, &reply, e);
    if (rc != 0 && reply.status == 404 && strcmp(reply.error_code, "RepoNotFound") != 0)
        err_set(e, ERR_IO,
                "%.80s no longer has \"%.100s\" as it was listed; run this again for the files "
                "that it has now",
                p->repo.name, f->name);
    else if (rc != 0 && reply.status != 0)
        pull_explain(&reply, p->endpoint, &p->repo, p->has_token, e);
    close(lock);
    return rc;
}

/*
 * Can the vocabulary of model i be read?  Its tokenizer is there before the weights of a snapshot
 * are fetched, which can take hours: the notice lets the user stop.
 */
static void check_vocab(struct mw_pull *p, uint32_t i, const char *path)
{
    struct mw_pull_variant *s = &p->shown[i];
    struct err why = ERR_INIT;
    struct vocab_info info;
    struct catalogue *c;
    char text[300];
    int rc;

    if (s->is_described && s->model.fit == MW_FIT_UNSUPPORTED)
        return;
    rc = vocab_open(&c, path, &why);
    if (rc == 0) {
        rc = vocab_info(c, &info, &why);
        catalogue_close(c);
    }
    if (rc == 0)
        return;
    why.file[0] = '\0';
    err_text(&why, text, sizeof text);
    s->is_described = true;
    s->model.fit = MW_FIT_UNSUPPORTED;
    snprintf(s->model.why, sizeof s->model.why, "its tokenizer: %.140s", text);
    snprintf(text, sizeof text, "the model cannot run, %s", s->model.why);
    if (p->on_notice != NULL)
        p->on_notice(p->ctx, text);
}

/* Write the path of the model in the cache. */
static int path_of(const struct mw_pull *p, const struct pull_variant *c, char *path, size_t n,
                   struct err *e)
{
    char first[PULL_PATH_MAX];

    if (pull_place_file(&p->place, &p->list.files[c->files[0]], first, e) != 0)
        return -1;
    if (c->is_snapshot)
        *strrchr(first, '/') = '\0';
    if (snprintf(path, n, "%s", first) >= (int)n)
        return err_set(e, ERR_ARGUMENT, "the path of the model is too long");
    return 0;
}

/* Fetch a file unless it is there, and link it in the snapshot. */
static int fetch_and_link(struct mw_pull *p, const struct pull_file *f, struct relay *r,
                          struct err *e)
{
    bool is_link;

    if ((!pull_place_has(&p->place, f) && fetch_file(p, f, r, e) != 0) ||
        pull_place_link(&p->place, f, &is_link, e) != 0)
        return -1;
    if (!is_link)
        notice(p, &p->said_links,
               "the disk of the cache has no links: files are stored under their own names");
    r->before += f->size;
    return 0;
}

/* Fetch the files of a model, and write its path. */
static int fetch_files(struct mw_pull *p, uint32_t i, struct relay *r, char *path, size_t n_path,
                       struct err *e)
{
    const struct pull_variant *c = &p->variants.all[i];

    if (path_of(p, c, path, n_path, e) != 0)
        return -1;
    for (uint32_t k = 0; k < c->n_file; k++) {
        if (c->is_snapshot && k == c->first_weights)
            check_vocab(p, i, path);
        if (fetch_and_link(p, &p->list.files[c->files[k]], r, e) != 0)
            return -1;
    }
    if (!c->is_snapshot)
        check_vocab(p, i, path);
    return pull_place_ref(&p->place, e);
}

/* Fetch the head from the repository of the model, or from its own. */
static int fetch_head_files(struct mw_pull *p, uint32_t i, struct relay *r, struct err *e)
{
    const struct pull_variant *c = &p->variants.all[i];
    struct mw_pull_variant *s;
    char path[PULL_PATH_MAX];

    if (c->head != UINT32_MAX)
        return fetch_and_link(p, &p->list.files[c->head], r, e);
    if (!has_other_head(p, i))
        return 0;
    s = &p->head->shown[p->head_at];
    s->is_described = true; /* it is not a model, and may have no vocabulary */
    s->model.fit = MW_FIT_UNSUPPORTED;
    return fetch_files(p->head, p->head_at, r, path, sizeof path, e);
}

/* The model works without its head, so a notice names what went wrong. */
static int fetch_head(struct mw_pull *p, uint32_t i, struct relay *r, struct err *e)
{
    struct err why = ERR_INIT;

    if (fetch_head_files(p, i, r, &why) == 0)
        return 0;
    if (why.code == ERR_CANCELLED) {
        *e = why;
        return -1;
    }
    notice_of_head(p, "was not fetched", &why);
    return 0;
}

int mw_pull_fetch(struct mw_pull *p, size_t i, mw_pull_fn *fn, void *ctx, char *path,
                  size_t n_path, struct err *e)
{
    struct pull_variant *c = &p->variants.all[i];
    struct mw_pull_variant *s = &p->shown[i];
    struct relay r = { .fn = fn, .ctx = ctx };
    struct err why = ERR_INIT;

    /* The model works without its head. */
    if (s->head != NULL && check_space(p, (uint32_t)i, &why) != 0) {
        c->head = UINT32_MAX;
        s->head = NULL;
        s->head_bytes = 0;
    }
    r.shown.total = c->bytes + s->head_bytes;
    if (check_space(p, (uint32_t)i, e) != 0)
        return -1;
    if (why.code != ERR_NONE)
        notice_of_head(p, "is left out", &why);
    return fetch_files(p, (uint32_t)i, &r, path, n_path, e) != 0
               ? -1
               : fetch_head(p, (uint32_t)i, &r, e);
}
