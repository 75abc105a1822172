#include "config.h"

#include "engine/hub/repo.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/utf8.h"
#include "engine/hub/find.h"
#include "engine/hub/repo_elsewhere.h"
#include "engine/hub/repo_words.h"

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* The revision becomes the path of a ref: "main", "v1.0", "refs/pr/1". */
static bool is_revision(const char *text)
{
    if (!cache_is_file(text) || strlen(text) >= sizeof((struct repo *)0)->revision)
        return false;
    for (; *text != '\0'; text++)
        if (!is_letter_or_digit(*text) && strchr("-_./", *text) == NULL)
            return false;
    return true;
}

/* A pattern of files, such as "*Q4_K_M*", chooses like its middle. */
static char *middle_of(char *pattern)
{
    size_t n;

    if (strchr(pattern, '*') == NULL)
        return pattern;
    pattern += strspn(pattern, "*-_./");
    n = strlen(pattern);
    while (n > 0 && strchr("*-_./", pattern[n - 1]) != NULL)
        pattern[--n] = '\0';
    return pattern;
}

/* ---- addresses ---- */

static int digit_of(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, c);

    return c != '\0' && at != NULL ? (int)(at - digits) % 16 : -1;
}

/* Replace percent-encoded bytes.  Returns false if one is a NUL or broken. */
static bool decode(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        int high, low;

        if (*text != '%') {
            *to++ = *text;
            continue;
        }
        high = digit_of(text[1]);
        low = high >= 0 ? digit_of(text[2]) : -1;
        if (low < 0 || high + low == 0)
            return false;
        *to++ = (char)(high * 16 + low);
        text += 2;
    }
    *to = '\0';
    return true;
}

/* Parameters of an address.  The page of a repository shows a file by one of its own, and links
 * that open another program name the model by them. */
struct query {
    char *file, *model;
};

/* Cut query and fragment. */
static struct query cut_query(char *text)
{
    static const char *const files[] = { "show_file_info=", "file=" };
    static const char *const models[] = { "model=", "hf-model-id=" };
    struct query q = { NULL, NULL };
    char *next;

    text[strcspn(text, "#")] = '\0';
    next = strchr(text, '?');
    if (next != NULL)
        *next++ = '\0';
    while (next != NULL) {
        char *one = next;

        next = strchr(one, '&');
        if (next != NULL)
            *next++ = '\0';
        for (size_t i = 0; i < 2; i++) {
            if (strncmp(one, files[i], strlen(files[i])) == 0)
                q.file = one + strlen(files[i]);
            if (strncmp(one, models[i], strlen(models[i])) == 0)
                q.model = one + strlen(models[i]);
        }
    }
    return q;
}

/* Returns the path of an address at the hub, or NULL if it is of another host. */
static char *path_at_hub(char *text, const char *endpoint)
{
    static const char *const hosts[] = { "huggingface.co", "www.huggingface.co", "hf.co" };
    const char *own = endpoint != NULL ? strstr(endpoint, "://") : NULL;
    char *path = own != NULL ? repo_after_host(text, own + 3) : NULL;

    for (size_t i = 0; path == NULL && i < sizeof hosts / sizeof hosts[0]; i++)
        path = repo_after_host(text, hosts[i]);
    return path != NULL || endpoint != NULL ? path : strchr(text, '/');
}

#define MAX_PARTS 64

/* Split a path at its slashes, and decode the parts; empty ones are dropped.  Returns their
 * number, or 0 if there are too many or one is broken. */
static size_t split_path(char *path, char *parts[MAX_PARTS])
{
    size_t n = 0;

    while (path != NULL) {
        char *slash = strchr(path, '/');

        if (slash != NULL)
            *slash++ = '\0';
        if (*path != '\0') {
            if (n == MAX_PARTS || !decode(path))
                return 0;
            parts[n++] = path;
        }
        path = slash;
    }
    return n;
}

/* Join parts with slashes.  Returns false if they do not fit. */
static bool join_parts(char *buf, size_t size, char *const *parts, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i > 0 ? "/" : "", parts[i]);
        if (used >= size)
            return false;
    }
    return true;
}

/* Parts of an address that follow the repository. */
static const char *const pages[] = { "tree", "blob",    "resolve", "raw",        "blame",
                                     "edit", "commits", "commit",  "discussions" };

/* Other things that the hub has. */
static const struct {
    const char *path, *is;
} others[] = {
    { "datasets", "a dataset" }, { "spaces", "a space" },  { "collections", "a collection" },
    { "papers", "a paper" },     { "docs", "a page" },     { "blog", "a page" },
    { "settings", "a page" },    { "models", "a search" },
};

static bool is_page(const char *part)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(part, pages[i]) == 0)
            return true;
    return false;
}

static bool is_model_file(const char *part)
{
    return find_ends_in(part, ".gguf") || find_ends_in(part, ".safetensors");
}

static int refuse_name(const char *name, struct err *e)
{
    return err_set(e, ERR_ARGUMENT,
                   "\"%.80s\" is not a repository; give ORG/NAME, for example "
                   "ggml-org/gemma-3-1b-it-GGUF",
                   name);
}

/* The parts of an address or a name. */
struct named {
    char name[CACHE_MAX_REPO + 1], revision[128], file[CACHE_MAX_FILE + 1];
    char *tag;
};

/* Read the parts after the repository: a page, its revision, and a file or folder. */
static bool read_page(struct named *to, char *const *parts, size_t n)
{
    size_t n_rev = 1;

    if (n == 0)
        return true;
    if (!is_page(parts[0]))
        return join_parts(to->file, sizeof to->file, parts, n); /* hf://ORG/NAME/FILE */
    if (n == 1 || strcmp(parts[0], "discussions") == 0)
        return true;
    if (strcmp(parts[1], "refs") == 0 && n >= 4) /* refs/pr/1 */
        n_rev = 3;
    return join_parts(to->revision, sizeof to->revision, parts + 1, n_rev) &&
           join_parts(to->file, sizeof to->file, parts + 1 + n_rev, n - 1 - n_rev);
}

/* Cut what follows a mark in the last part of the name. */
static char *cut_at(char *part, char mark)
{
    char *at = strchr(part, mark);

    if (at != NULL)
        *at++ = '\0';
    return at;
}

/* Read the path of an address: [models/]ORG/NAME[@REVISION][:TYPE][/PAGE/REVISION/FILE].  Some
 * programs write the type of the weights after '@'. */
static int read_path(struct named *to, char *path, bool is_files, const char *shown,
                     struct err *e)
{
    char *parts[MAX_PARTS], **p = parts, *revision;
    size_t n = split_path(path, parts), n_name;

    if (n > 2 && strcmp(p[0], "api") == 0)
        p++, n--;
    if (n > 2 && strcmp(p[0], "models") == 0)
        p++, n--;
    if (n == 0)
        return refuse_name(shown, e);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(p[0], others[i].path) == 0)
            return err_set(e, ERR_ARGUMENT,
                           "\"%.80s\" is %s, not a model; give ORG/NAME of a model", shown,
                           others[i].is);
    n_name = n == 1 || (n > 2 && is_page(p[1])) ? 1 : 2;
    if (n > n_name && !is_files && !is_page(p[n_name]) && !is_model_file(p[n - 1]))
        return refuse_name(shown, e);
    to->tag = cut_at(p[n_name - 1], ':');
    revision = cut_at(p[n_name - 1], '@');
    if (revision != NULL && n == n_name && to->tag == NULL &&
        find_is_label(revision, strlen(revision)))
        to->tag = revision;
    else if (revision != NULL && snprintf(to->revision, sizeof to->revision, "%s", revision) >=
                                     (int)sizeof to->revision)
        return refuse_name(shown, e);
    if (strlen(p[n_name - 1]) > 4 && strcmp(strrchr(p[n_name - 1], '\0') - 4, ".git") == 0)
        p[n_name - 1][strlen(p[n_name - 1]) - 4] = '\0';
    if (!join_parts(to->name, sizeof to->name, p, n_name) ||
        !read_page(to, p + n_name, n - n_name))
        return refuse_name(shown, e);
    return 0;
}

/* Say what to type instead of an address of another host. */
static int refuse_host(const char *host, const char *endpoint, char *path, struct err *e)
{
    char *parts[MAX_PARTS], name[CACHE_MAX_REPO + 1] = "";
    size_t n = split_path(path, parts);

    if (n > 2 && strcmp(parts[0], "models") == 0)
        join_parts(name, sizeof name, parts + 1, 2);
    else if (n == 2 || (n > 2 && is_page(parts[2]))) /* a mirror of the hub */
        join_parts(name, sizeof name, parts, 2);
    name[strcspn(name, ":@")] = '\0';
    if (n > 0 && is_model_file(parts[n - 1]) && (n <= 2 || !is_page(parts[2])))
        return err_set(
            e, ERR_ARGUMENT,
            "\"%.60s\" is not the hub %.60s; download %.60s with a browser and open it "
            "with -m, or give ORG/NAME of a model on the hub",
            host, endpoint != NULL ? endpoint : "of models", parts[n - 1]);
    return err_set(e, ERR_ARGUMENT,
                   "\"%.60s\" is not the hub %.60s; give ORG/NAME, for example %.60s, or set "
                   "HF_ENDPOINT to the address of that hub",
                   host, endpoint != NULL ? endpoint : "of models",
                   cache_is_repo(name) ? name : "ggml-org/gemma-3-1b-it-GGUF");
}

/* If text begins with one of these schemes, return what follows it. */
static char *after_scheme(char *text, const char *const *schemes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0)
            return text + strlen(schemes[i]);
    return NULL;
}

/* Returns the path of an address that names a model of the hub without its host:
 *
 *     hf://ORG/NAME/FILE                            huggingface://ORG/NAME/FILE  hf:ORG/NAME
 *     lmstudio://open_from_hf?model=ORG/NAME        other programs have links like it
 *     jan://models/huggingface/ORG/NAME
 *
 * or NULL if it is not one. */
static char *path_without_host(char *text, const struct query *q)
{
    static const char *const hub[] = { "hf://", "huggingface://", "hf:" };
    static const char *const web[] = { "http://", "https://", "ssh://", "git" };
    char *path = after_scheme(text, hub, sizeof hub / sizeof hub[0]), *last, *second;

    if (path != NULL)
        return path;
    path = strstr(text, "://");
    if (path == NULL || after_scheme(text, web, sizeof web / sizeof web[0]) != NULL)
        return NULL;
    if (q->model != NULL)
        return q->model;
    last = strrchr(path + 3, '/');
    second = last != NULL ? memrchr(path + 3, '/', (size_t)(last - path) - 3) : NULL;
    return second != NULL ? second + 1 : NULL;
}

static int read_address(struct named *to, char *text, const char *endpoint, struct err *e)
{
    char shown[100], *scheme, *path;
    struct query q;

    snprintf(shown, sizeof shown, "%.99s", text);
    q = cut_query(text);
    scheme = strstr(text, "://");
    path = path_without_host(text, &q);
    if (path == NULL) {
        if (scheme != NULL)
            text = scheme + 3;
        if (strchr(text, '@') != NULL && strcspn(text, "@") < strcspn(text, "/"))
            text = strchr(text, '@') + 1; /* git@hf.co:ORG/NAME */
        path = path_at_hub(text, endpoint);
        if (path == NULL) {
            path = text + strcspn(text, "/");
            if (*path != '\0')
                *path++ = '\0';
            return refuse_host(text, endpoint, path, e);
        }
    }
    if (read_path(to, path,
                  strncasecmp(shown, "h", 1) == 0 && strncasecmp(shown, "http", 4) != 0, shown,
                  e) != 0)
        return -1;
    if (q.file != NULL && (!decode(q.file) || snprintf(to->file, sizeof to->file, "%s",
                                                       q.file) >= (int)sizeof to->file))
        return refuse_name(shown, e);
    return 0;
}

/* Is it HOST/ORG/NAME?  The names of organizations have no dots. */
static bool has_host(const char *text)
{
    size_t n = strcspn(text, "/");
    const char *rest = text + n + (text[n] != '\0'), *slash = strchr(rest, '/');

    return memchr(text, '.', n) != NULL && slash != NULL && slash[1] != '\0';
}

/* "ORG/NAME", "ORG/NAME@REVISION", "ORG/NAME:FILE", "ORG/NAME/tree/main", "ORG/NAME/FILE". */
static int read_name(struct named *to, char *text, struct err *e)
{
    char *colon = strchr(text, ':'), shown[100];

    snprintf(shown, sizeof shown, "%.99s", text);
    if (colon != NULL)
        *colon = '\0';
    if (text[0] == '/' || text[0] == '\0' || read_path(to, text, false, shown, e) != 0)
        return refuse_name(shown, e);
    if (colon != NULL)
        to->tag = colon + 1;
    return 0;
}

/* ---- the whole ---- */

/* Is "NAME:TAG" one of Ollama's library, as "llama3.2:1b"?  The hub has few names without an
 * organization, and types or files after the colon. */
static bool is_ollama(const struct named *n)
{
    return n->tag != NULL && strchr(n->name, '/') == NULL && n->tag[0] != '\0' &&
           !find_is_label(n->tag, strlen(n->tag)) && !is_model_file(n->tag) &&
           strcasecmp(n->tag, "safetensors") != 0;
}

static int parse(struct repo *out, struct named *n, struct repo_words *w, const char *endpoint,
                 struct err *e)
{
    const char *variant = n->file;
    char shown[100];

    snprintf(shown, sizeof shown, "%.99s", w->repo);
    if (repo_check_elsewhere(w->repo, e) != 0)
        return -1;
    if (w->is_ollama)
        return repo_refuse_ollama(w->repo, e);
    if (w->is_address || (endpoint != NULL && has_host(w->repo))
            ? read_address(n, w->repo, endpoint, e) != 0
            : read_name(n, w->repo, e) != 0)
        return -1;
    if (!cache_is_repo(n->name))
        return refuse_name(n->name, e);
    if (is_ollama(n))
        return repo_refuse_ollama(shown, e);
    out->is_plain = !w->is_command && !w->is_address;
    snprintf(out->name, sizeof out->name, "%s", n->name);
    if (w->revision != NULL)
        snprintf(n->revision, sizeof n->revision, "%.127s", w->revision);
    if (w->file != NULL)
        variant = middle_of(w->file);
    else if (n->tag != NULL && (out->is_plain || strcasecmp(n->tag, "latest") != 0))
        variant = n->tag;
    if ((variant[0] != '\0' || variant == n->tag) && !cache_is_file(variant))
        return err_set(e, ERR_ARGUMENT, "\"%.80s\" is not a file or a type; give one like Q4_0",
                       variant);
    snprintf(out->variant, sizeof out->variant, "%s", variant);
    return 0;
}

int repo_parse(struct repo *out, const char *text, const char *revision, const char *endpoint,
               struct err *e)
{
    size_t len = utf8_trim(&text, strlen(text));
    struct named n = { .tag = NULL };
    struct repo_words w;
    char copy[REPO_TEXT];

    memset(out, 0, sizeof *out);
    if (len >= sizeof copy)
        return refuse_name(text, e);
    snprintf(copy, sizeof copy, "%.*s", (int)len, text);
    repo_words_read(&w, copy, endpoint);
    if (w.repo == NULL) {
        snprintf(copy, sizeof copy, "%.*s", (int)len, text);
        return refuse_name(copy, e);
    }
    if (parse(out, &n, &w, endpoint, e) != 0)
        return -1;
    if (revision == NULL)
        revision = n.revision[0] != '\0' ? n.revision : "main";
    if (!is_revision(revision))
        return err_set(e, ERR_ARGUMENT,
                       "\"%.80s\" is not a revision; give a branch, a tag or a commit",
                       revision);
    snprintf(out->revision, sizeof out->revision, "%s", revision);
    return 0;
}

bool repo_append_url(char *buf, size_t n, const char *text, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t at = strlen(buf);

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (at + 4 > n)
            return false;
        if (is_letter_or_digit(*text) || strchr("-._~", *text) != NULL ||
            (c == '/' && keep_slash)) {
            buf[at++] = *text;
        } else {
            buf[at++] = '%';
            buf[at++] = digits[c >> 4];
            buf[at++] = digits[c & 15];
        }
    }
    buf[at] = '\0';
    return true;
}
