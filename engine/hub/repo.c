#include "config.h"

#include "engine/hub/repo.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/utf8.h"

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

/* ---- commands of other programs ---- */

/* Options of programs that fetch models whose value is not a repository. */
static const char *const valued[] = { "--local-dir", "--cache-dir",   "--token",  "--repo-type",
                                      "--revision",  "--include",     "--output", "--exclude",
                                      "--branch",    "--max-workers", "-o",       "-O",
                                      "-b",          "-c",            "-ngl",     "-p" };
/* Words after which the repository follows, and options with its file. */
static const char *const verbs[] = { "download", "pull",  "run",  "clone",    "get",
                                     "snapshot", "-hf",   "-hfr", "--hf-repo" };
static const char *const file_options[] = { "-hff", "--hf-file", "--include" };

static bool is_among(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

#define IS_AMONG(word, list) is_among(word, list, sizeof(list) / sizeof((list)[0]))

#define BLANKS " \t\r\n\v\f"

/* Remove quotes and brackets around a text. */
static char *without_quotes(char *text)
{
    static const char around[] = "\"'`<>()[],;";
    size_t n = strlen(text);

    while (n > 1 && strchr(around, text[n - 1]) != NULL)
        text[--n] = '\0';
    while (n > 1 && strchr(around, text[0]) != NULL)
        text++, n--;
    return text;
}

/* Take the next word.  NULL: there are no more. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, BLANKS);
    size_t n = strcspn(word, BLANKS);

    if (n == 0)
        return NULL;
    *rest = word + n + (word[n] != '\0');
    word[n] = '\0';
    return without_quotes(word);
}

static bool is_address(const char *word)
{
    static const char *const begins[] = { "hf.co/", "huggingface.co/", "www.huggingface.co/",
                                          "git@hf.co:" };
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncasecmp(word, begins[i], strlen(begins[i])) == 0)
            return true;
    return n > 0 && strncmp(word + n, "://", 3) == 0;
}

/* Is a text of several words a command?  The names of files have blanks, too. */
static bool is_command(const char *text)
{
    size_t n = strcspn(text, BLANKS);

    return text[n] != '\0' && !is_address(text) && memchr(text, ':', n) == NULL;
}

/* The words of a command that say which model it fetches; NULL: missing. */
struct command {
    char *repo, *file, *revision;
};

/* Read a text of several words. */
static struct command read_command(char *text)
{
    struct command c = { NULL, NULL, NULL };
    bool is_after_verb = false, is_download = false, is_odd = false;
    const char *option = "", *begin = text;
    char *word;

    while ((word = next_word(&text)) != NULL) {
        char *equals = word[0] == '-' ? strchr(word, '=') : NULL;

        if (equals != NULL) {
            *equals = '\0';
            option = word;
            word = equals + 1;
        }
        if (strcmp(option, "--revision") == 0 || strcmp(option, "--branch") == 0)
            c.revision = word;
        else if (IS_AMONG(option, file_options))
            c.file = word;
        else if (IS_AMONG(option, valued))
            option = "";
        else if (IS_AMONG(word, verbs)) {
            is_after_verb = true;
            if (c.repo != NULL && !is_address(c.repo)) /* the program's own path */
                c.repo = NULL;
            is_odd = false;
            is_download |= strcmp(word, "download") == 0;
        } else if (word[0] == '-')
            option = word;
        else if (c.repo == NULL ? is_address(word) || is_after_verb || strchr(word, '/') != NULL
                                : is_address(word) && !is_address(c.repo))
            c.repo = word;
        else if (c.file == NULL && (is_download || (c.repo == begin && strchr(word, '.') != NULL)))
            c.file = word;
        else
            is_odd |= c.repo == begin; /* ORG/NAME and a word: neither a command nor a file */
        if (word != option)
            option = "";
    }
    if (is_odd)
        c.repo = NULL;
    return c;
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

/* Cut query and fragment.  The page of a repository shows a file by a query of its own. */
static char *cut_query(char *text)
{
    static const char shows[] = "show_file_info=";
    char *query, *file;

    text[strcspn(text, "#")] = '\0';
    query = text + strcspn(text, "?");
    if (*query == '\0')
        return NULL;
    *query = '\0';
    file = strstr(query + 1, shows);
    if (file == NULL)
        return NULL;
    file += strlen(shows);
    file[strcspn(file, "&")] = '\0';
    return file;
}

/* If text begins with this host, return what follows it, its port and a slash or colon. */
static char *after_host(char *text, const char *host)
{
    size_t n = strlen(host);

    if (strncasecmp(text, host, n) != 0)
        return NULL;
    if (text[n] == ':' && text[n + 1] >= '0' && text[n + 1] <= '9')
        n += 1 + strspn(text + n + 1, "0123456789");
    if (text[n] != '/' && text[n] != ':' && text[n] != '\0')
        return NULL;
    return text + n + (text[n] != '\0');
}

/* Returns the path of an address at the hub, or NULL if it is of another host. */
static char *path_at_hub(char *text, const char *endpoint)
{
    static const char *const hosts[] = { "huggingface.co", "www.huggingface.co", "hf.co" };
    const char *own = endpoint != NULL ? strstr(endpoint, "://") : NULL;
    char *path = own != NULL ? after_host(text, own + 3) : NULL;

    for (size_t i = 0; path == NULL && i < sizeof hosts / sizeof hosts[0]; i++)
        path = after_host(text, hosts[i]);
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
    { "datasets", "a dataset" },     { "spaces", "a space" },
    { "collections", "a collection" }, { "papers", "a paper" },
    { "docs", "a page" },            { "blog", "a page" },
    { "settings", "a page" },        { "models", "a search" },
};

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
    if (!IS_AMONG(parts[0], pages))
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

/* Read the path of an address: [models/]ORG/NAME[@REVISION][:TYPE][/PAGE/REVISION/FILE]. */
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
    n_name = n == 1 || (n > 2 && IS_AMONG(p[1], pages)) ? 1 : 2;
    if (n > n_name && !is_files && !IS_AMONG(p[n_name], pages))
        return refuse_name(shown, e);
    to->tag = cut_at(p[n_name - 1], ':');
    revision = cut_at(p[n_name - 1], '@');
    if (revision != NULL && snprintf(to->revision, sizeof to->revision, "%s", revision) >=
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
    else if (n > 2 && IS_AMONG(parts[2], pages)) /* a mirror of the hub */
        join_parts(name, sizeof name, parts, 2);
    name[strcspn(name, ":@")] = '\0';
    return err_set(e, ERR_ARGUMENT,
                   "\"%.60s\" is not the hub %.60s; give ORG/NAME, for example %.60s, or set "
                   "HF_ENDPOINT to the address of that hub",
                   host, endpoint != NULL ? endpoint : "of models",
                   cache_is_repo(name) ? name : "ggml-org/gemma-3-1b-it-GGUF");
}

static int read_address(struct named *to, char *text, const char *endpoint, struct err *e)
{
    char shown[100], *file, *scheme, *path;
    bool is_files = strncasecmp(text, "hf://", 5) == 0;

    snprintf(shown, sizeof shown, "%.99s", text);
    file = cut_query(text);
    scheme = strstr(text, "://");
    if (is_files) {
        path = text + 5;
    } else {
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
    if (read_path(to, path, is_files, shown, e) != 0)
        return -1;
    if (file != NULL && (!decode(file) || snprintf(to->file, sizeof to->file, "%s", file) >=
                                              (int)sizeof to->file))
        return refuse_name(shown, e);
    return 0;
}

/* "ORG/NAME", "ORG/NAME@REVISION", "ORG/NAME:FILE", "ORG/NAME/tree/main". */
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

static int parse(struct repo *out, struct named *n, struct command *c, const char *endpoint,
                 struct err *e)
{
    bool is_there = is_address(c->repo);
    const char *choice = n->file;

    if (is_there ? read_address(n, c->repo, endpoint, e) != 0 : read_name(n, c->repo, e) != 0)
        return -1;
    if (!cache_is_repo(n->name))
        return refuse_name(n->name, e);
    out->is_plain = out->is_plain && !is_there;
    snprintf(out->name, sizeof out->name, "%s", n->name);
    if (c->revision != NULL)
        snprintf(n->revision, sizeof n->revision, "%.127s", c->revision);
    if (c->file != NULL)
        choice = middle_of(c->file);
    else if (n->tag != NULL && (out->is_plain || strcasecmp(n->tag, "latest") != 0))
        choice = n->tag;
    if ((choice[0] != '\0' || choice == n->tag) && !cache_is_file(choice))
        return err_set(e, ERR_ARGUMENT,
                       "\"%.80s\" is not a file or a type; give one like Q4_0", choice);
    snprintf(out->choice, sizeof out->choice, "%s", choice);
    return 0;
}

int repo_parse(struct repo *out, const char *text, const char *revision, const char *endpoint,
               struct err *e)
{
    size_t len = utf8_trim(&text, strlen(text));
    struct command c = { NULL, NULL, NULL };
    struct named n = { .tag = NULL };
    char copy[REPO_TEXT];

    memset(out, 0, sizeof *out);
    if (len >= sizeof copy)
        return refuse_name(text, e);
    snprintf(copy, sizeof copy, "%.*s", (int)len, text);
    out->is_plain = !is_command(copy);
    if (out->is_plain)
        c.repo = without_quotes(copy);
    else
        c = read_command(copy);
    if (c.repo == NULL) {
        snprintf(copy, sizeof copy, "%.*s", (int)len, text);
        return refuse_name(copy, e);
    }
    if (parse(out, &n, &c, endpoint, e) != 0)
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
