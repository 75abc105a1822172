#include "config.h"

#include "engine/hub/repo_words.h"

#include <string.h>
#include <strings.h>

#include "engine/hub/find.h"

#define IS_AMONG(word, list) is_among(word, list, sizeof(list) / sizeof((list)[0]))
#define BLANKS               " \t\r\n\v\f"

/* Options of programs that fetch models whose value is not a repository. */
static const char *const valued[] = {
    "--local-dir", "--cache-dir", "--token",   "--repo-type", "--revision",
    "--include",   "--output",    "--exclude", "--branch",    "--max-workers",
    "-o",          "-O",          "-b",        "-c",          "-ngl",
    "-p"
};
/* Words after which the repository follows, and options with its file. */
static const char *const verbs[] = { "download", "pull", "run",  "clone",    "get",
                                     "snapshot", "-hf",  "-hfr", "--hf-repo" };
static const char *const file_options[] = { "-hff", "--hf-file", "--include" };

static bool is_among(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

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

/* Remove punctuation around an address or a name, neither of which begins or ends with it. */
static char *without_marks(char *text)
{
    size_t n;

    text = without_quotes(text);
    text += strspn(text, "*");
    n = strlen(text);
    while (n > 1 && strchr(".!?*", text[n - 1]) != NULL && strchr("./", text[n - 2]) == NULL)
        text[--n] = '\0';
    return without_quotes(text);
}

/* The target of a link in Markdown, "[text](target)"; other texts are returned as they are. */
static char *target_of(char *text)
{
    char *target = strstr(text, "](");

    if (target == NULL)
        return text;
    target += 2;
    target[strcspn(target, ")" BLANKS)] = '\0';
    return target;
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

char *repo_after_host(char *text, const char *host)
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

static bool is_address(char *word, const char *endpoint)
{
    static const char *const begins[] = { "hf.co/",      "huggingface.co/",
                                          "git@hf.co:",  "www.huggingface.co/",
                                          "ollama.com/", "registry.ollama.ai/",
                                          "github.com/", "www.ollama.com/",
                                          "file:/",      "hf:" };
    const char *own = endpoint != NULL ? strstr(endpoint, "://") : NULL;
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncasecmp(word, begins[i], strlen(begins[i])) == 0 && strchr(word, '/') != NULL)
            return true;
    return (n > 0 && strncmp(word + n, "://", 3) == 0) ||
           (own != NULL && repo_after_host(word, own + 3) != NULL && strchr(word, '/') != NULL);
}

/* Is a text of several words a command?  The names of files have blanks, too. */
static bool is_command(char *text, const char *endpoint)
{
    size_t n = strcspn(text, BLANKS);

    return text[n] != '\0' && !is_address(text, endpoint) && memchr(text, ':', n) == NULL;
}

static bool is_file(const char *word)
{
    return strchr(word, '.') != NULL || find_is_label(word, strlen(word));
}

/* Read a text of several words. */
static void read_command(struct repo_words *c, char *text, const char *endpoint)
{
    bool is_after_verb = false, is_download = false, is_odd = false;
    const char *option = "", *begin = text, *before = "";
    char *word;

    while ((word = next_word(&text)) != NULL) {
        char *equals = word[0] == '-' ? strchr(word, '=') : NULL;

        if (equals != NULL) {
            *equals = '\0';
            option = word;
            word = equals + 1;
        }
        if (strcmp(option, "--revision") == 0 || strcmp(option, "--branch") == 0)
            c->revision = word;
        else if (IS_AMONG(option, file_options))
            c->file = word;
        else if (IS_AMONG(option, valued))
            option = "";
        else if (IS_AMONG(word, verbs)) {
            is_after_verb = true;
            if (c->repo != NULL && !is_address(c->repo, endpoint)) /* the program's own path */
                c->repo = NULL;
            is_odd = false;
            is_download |= strcmp(word, "download") == 0;
            c->is_ollama |= strcmp(before, "ollama") == 0 || find_ends_in(before, "/ollama");
        } else if (word[0] == '-')
            option = word;
        else if (c->repo == NULL
                     ? is_address(word, endpoint) || is_after_verb || strchr(word, '/') != NULL
                     : is_address(word, endpoint) && !is_address(c->repo, endpoint))
            c->repo = word;
        else if (c->file == NULL && (is_download || (c->repo == begin && is_file(word))))
            c->file = word;
        else
            is_odd |= c->repo == begin; /* ORG/NAME and a word: neither a command nor a file */
        if (word != option)
            option = "";
        before = word;
    }
    if (is_odd)
        c->repo = NULL;
}

void repo_words_read(struct repo_words *out, char *text, const char *endpoint)
{
    *out = (struct repo_words){ .repo = NULL };
    text = target_of(text);
    out->is_command = is_command(text, endpoint);
    if (out->is_command)
        read_command(out, text, endpoint);
    else
        out->repo = text;
    if (out->repo == NULL)
        return;
    out->repo = without_marks(out->repo);
    out->is_address = is_address(out->repo, endpoint);
    out->is_ollama &= !out->is_address;
}
