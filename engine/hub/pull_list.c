#include "config.h"

#include "engine/hub/pull_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/format/json.h"

/* {"sha": …, "siblings": [{"rfilename": …, "size": …, "blobId": …, "lfs": {…}}]} */
enum depth { IN_ROOT = 1, IN_SIBLINGS = 2, IN_FILE = 3, IN_LFS = 4 };

struct parser {
    struct pull_list *list;
    uint32_t room;
    char key[IN_LFS + 1][16]; /* the last key at each depth, cut */
    struct pull_file file;
    char name[CACHE_MAX_FILE + 1];
    bool has_size, states_size; /* a valid one; any value */
    uint32_t n_unsized; /* files whose size the answer does not state */
};

/* Copy 40 or 64 digits; anything else becomes "". */
static void copy_digest(char to[PULL_DIGEST], const char *text, size_t len)
{
    snprintf(to, PULL_DIGEST, "%.*s", len < PULL_DIGEST ? (int)len : 0, text);
    if (!cache_is_digest(to))
        to[0] = '\0';
}

static bool read_size(const char *text, size_t len, uint64_t *out)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || n > PULL_SIZE_MAX)
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *out = n;
    return len > 0 && n <= PULL_SIZE_MAX;
}

static int add_file(struct parser *p, struct err *e)
{
    struct pull_list *l = p->list;

    if (!cache_is_file(p->name) || !p->has_size) {
        l->n_unsafe++;
        p->n_unsized += !p->states_size;
        return 0;
    }
    if (l->n == PULL_LIST_FILES)
        return err_set(e, ERR_UNSUPPORTED, "the repository has more than %d files",
                       PULL_LIST_FILES);
    if (l->n == p->room) {
        uint32_t room = p->room > 0 ? p->room * 2 : 64;
        struct pull_file *larger = realloc(l->files, room * sizeof *larger);

        if (larger == NULL)
            return err_memory(e, "a list of %u files", room);
        l->files = larger;
        p->room = room;
    }
    p->file.name = strdup(p->name);
    if (p->file.name == NULL)
        return err_memory(e, "a list of %u files", l->n);
    l->files[l->n++] = p->file;
    return 0;
}

static void read_file_value(struct parser *p, enum json_event event, const char *text,
                            size_t len)
{
    const char *key = p->key[IN_FILE];

    if (event == JSON_STRING && strcmp(key, "rfilename") == 0) {
        bool fits = len < sizeof p->name && memchr(text, '\0', len) == NULL;

        snprintf(p->name, sizeof p->name, "%.*s", fits ? (int)len : 0, text);
    } else if (event == JSON_NUMBER && strcmp(key, "size") == 0) {
        p->has_size = read_size(text, len, &p->file.size);
    } else if (event == JSON_STRING && strcmp(key, "blobId") == 0 && !p->file.is_large &&
               len == 40) {
        copy_digest(p->file.etag, text, len);
    }
}

static void read_value(struct parser *p, enum json_event event, const char *text, size_t len,
                       unsigned depth)
{
    bool is_in_files = strcmp(p->key[IN_ROOT], "siblings") == 0;

    if (depth == IN_ROOT && event == JSON_STRING && strcmp(p->key[IN_ROOT], "sha") == 0)
        copy_digest(p->list->commit, text, len);
    else if (depth == IN_FILE && is_in_files)
        read_file_value(p, event, text, len);
    else if (depth == IN_LFS && is_in_files && strcmp(p->key[IN_FILE], "lfs") == 0 &&
             event == JSON_STRING && strcmp(p->key[IN_LFS], "sha256") == 0 && len == 64) {
        copy_digest(p->file.etag, text, len);
        p->file.is_large = true;
    }
}

static int on_event(void *ctx, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    struct parser *p = ctx;
    bool is_file = depth == IN_SIBLINGS && strcmp(p->key[IN_ROOT], "siblings") == 0;

    switch (event) {
    case JSON_KEY:
        if (depth <= IN_LFS)
            snprintf(p->key[depth], sizeof p->key[depth], "%.*s",
                     len < sizeof p->key[depth] ? (int)len : 0, text);
        p->states_size |= depth == IN_FILE && strcmp(p->key[IN_FILE], "size") == 0;
        return 0;
    case JSON_OBJECT:
        if (is_file) {
            memset(&p->file, 0, sizeof p->file);
            p->name[0] = '\0';
            p->has_size = p->states_size = false;
        }
        return 0;
    case JSON_OBJECT_END: return is_file ? add_file(p, e) : 0;
    case JSON_ARRAY:
    case JSON_ARRAY_END: return 0;
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
    case JSON_NUMBER:
    case JSON_STRING: read_value(p, event, text, len, depth); return 0;
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp(((const struct pull_file *)a)->name, ((const struct pull_file *)b)->name);
}

/* Sort the files, and leave out names that are the same or differ only in case. */
static void drop_twins(struct pull_list *l)
{
    uint32_t n = 0;

    if (l->n > 0)
        qsort(l->files, l->n, sizeof *l->files, by_name);
    for (uint32_t i = 0; i < l->n; i++) {
        if (n > 0 && by_name(&l->files[n - 1], &l->files[i]) == 0) {
            free(l->files[i].name);
            l->n_unsafe++;
        } else {
            l->files[n++] = l->files[i];
        }
    }
    l->n = n;
}

int pull_list_parse(struct pull_list *l, const char *text, size_t len, struct err *e)
{
    struct parser p = { .list = l };

    if (json_stream_text(text, len, on_event, &p, e) != 0)
        return err_at(e, "the answer of the hub", ERR_NO_OFFSET, NULL);
    if (l->commit[0] == '\0')
        return err_set(e, ERR_FORMAT,
                       "the answer of the hub names no commit; check that HF_ENDPOINT is a "
                       "hub");
    if (l->n == 0 && p.n_unsized > 0)
        return err_set(e, ERR_FORMAT,
                       "the answer of the hub has no sizes of files, without which nothing can be "
                       "checked; set HF_ENDPOINT to a hub that answers \"?blobs=true\"");
    drop_twins(l);
    return 0;
}

void pull_list_free(struct pull_list *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        free(l->files[i].name);
    free(l->files);
    memset(l, 0, sizeof *l);
}

int pull_explain(const struct http_reply *reply, const char *endpoint, const struct repo *r,
                 bool has_token, struct err *e)
{
    long s = reply->status;
    char text[80];

    if (strcmp(reply->error_code, "GatedRepo") == 0)
        return err_set(
            e, ERR_IO,
            "%.80s is gated: accept its conditions at %.60s/%.80s in a browser, then "
            "%s",
            r->name, endpoint, r->name,
            has_token ? "run this again" : "set HF_TOKEN to a token of that account");
    if (strcmp(reply->error_code, "RevisionNotFound") == 0)
        return err_set(e, ERR_IO, "%.80s has no revision \"%.60s\"; give another --revision",
                       r->name, r->revision);
    if (s == 401 && has_token && strcmp(reply->error_code, "RepoNotFound") != 0)
        return err_set(e, ERR_IO,
                       "%.60s refuses the access token; check HF_TOKEN or the file with the "
                       "token",
                       endpoint);
    if (s == 401 || s == 404 || strcmp(reply->error_code, "RepoNotFound") == 0)
        return err_set(e, ERR_IO,
                       "%.60s has no repository %.80s, or it is private; check the name%s",
                       endpoint, r->name,
                       has_token ? " and what the token may read"
                                 : ", or set HF_TOKEN if you may read it");
    if (s == 403)
        return err_set(e, ERR_IO,
                       "%.60s denies access to %.80s; open it in a browser to see why%s",
                       endpoint, r->name, has_token ? "" : ", or set HF_TOKEN");
    http_status_text(reply, text, sizeof text);
    if (reply->retry_after_s > HTTP_HOLD_S)
        return err_set(e, ERR_IO, "%.60s %s; run this again then", endpoint, text);
    return err_set(e, ERR_IO, "%.60s %s; try again in a minute%s", endpoint, text,
                   has_token || s != 429 ? "" : ", or set HF_TOKEN");
}

/* Does the hub have something of that name that is not a model? */
static bool is_there(struct http *h, const char *endpoint, const char *kind, const char *name)
{
    char url[HTTP_URL_MAX], *text = NULL;
    struct err ignored = ERR_INIT;
    struct http_reply reply;
    size_t len;

    snprintf(url, sizeof url, "%s/api/%ss/%s", endpoint, kind, name);
    http_get_text(h, url, PULL_LIST_BYTES, &text, &len, &reply, &ignored);
    free(text);
    return reply.status == 200;
}

/* Names without an organization are nearly always those of Ollama's library. */
static int refuse_bare(const struct repo *r, const char *endpoint, struct err *e)
{
    char name[160];

    snprintf(name, sizeof name, "%.80s%s%.70s", r->name, r->variant[0] != '\0' ? ":" : "",
             r->variant);
    return err_set(e, ERR_IO,
                   "%.40s has no repository %.60s, which has no ORG/; if it is a name of Ollama's "
                   "library, \"ollama pull %.70s\" fetches it, and -m opens it",
                   endpoint, r->name, name);
}

/* Explain that there is no such model: people also paste the names of data sets. */
static int explain_missing(struct http *h, const struct http_reply *reply, const char *endpoint,
                           const struct repo *r, bool has_token, enum pull_lack *lacks,
                           struct err *e)
{
    static const char *const kinds[] = { "dataset", "space" };
    bool lacks_revision = strcmp(reply->error_code, "RevisionNotFound") == 0;
    bool is_missing = (reply->status == 401 || reply->status == 404) &&
                      strcmp(reply->error_code, "GatedRepo") != 0 && !lacks_revision;

    *lacks = is_missing       ? PULL_LACKS_REPO
             : lacks_revision ? PULL_LACKS_REVISION
                              : PULL_LACKS_NOTHING;

    for (size_t i = 0; is_missing && i < sizeof kinds / sizeof kinds[0]; i++)
        if (is_there(h, endpoint, kinds[i], r->name))
            return err_set(e, ERR_UNSUPPORTED,
                           "%.100s is a %s, not a model; check the name of the model", r->name,
                           kinds[i]);
    if (is_missing && strchr(r->name, '/') == NULL)
        return refuse_bare(r, endpoint, e);
    return pull_explain(reply, endpoint, r, has_token, e);
}

/* Is it HTML?  Some login pages do not say so. */
static bool is_page(const char *text)
{
    return text != NULL && text[strspn(text, " \t\r\n\v\f")] == '<';
}

int pull_list_get(struct pull_list *l, struct http *h, const char *endpoint,
                  const struct repo *r, bool has_token, struct err *e)
{
    char url[HTTP_URL_MAX];
    struct http_reply reply;
    char *text;
    size_t len;
    int rc;

    snprintf(url, sizeof url, "%s/api/models/%s/revision/", endpoint, r->name);
    if (!repo_append_url(url, sizeof url - 16, r->revision, false))
        return err_set(e, ERR_ARGUMENT, "the revision is too long");
    strcat(url, "?blobs=true");
    if (http_get_text(h, url, PULL_LIST_BYTES, &text, &len, &reply, e) != 0)
        return -1;
    rc = reply.status == 511 || is_page(text)
             ? http_refuse_page(h, &reply, e)
         : text != NULL
             ? pull_list_parse(l, text, len, e)
                      : explain_missing(h, &reply, endpoint, r, has_token, &l->lacks, e);
    free(text);
    return rc;
}
