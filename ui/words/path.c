#include "config.h"

#include "ui/words/path.h"

#include <sys/stat.h>

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/visible.h"

/* Return what follows the home folder at the start of path: "", "/x"; or NULL. */
static const char *after_home(const char *path)
{
    static const char *const names[] = { "~", "$HOME", "${HOME}" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n = strlen(names[i]);

        if (strncmp(path, names[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return path + n;
    }
    return NULL;
}

/* Return the path in an address of a file of this machine, percent-encoded; or NULL. */
static const char *after_file(const char *path)
{
    if (strncasecmp(path, "file:/", 6) != 0)
        return NULL;
    path += 5;
    if (strncmp(path, "//", 2) != 0)
        return path;
    path += 2;
    return path[0] == '/' ? path : strncasecmp(path, "localhost/", 10) == 0 ? path + 9 : NULL;
}

/* Copy with percent-encoded bytes replaced; those that are broken stay. */
static void decode(char *buf, size_t n, const char *path)
{
    size_t at = 0;

    for (; *path != '\0' && at + 1 < n; path++) {
        unsigned byte;

        if (path[0] == '%' && isxdigit((unsigned char)path[1]) &&
            isxdigit((unsigned char)path[2]) && sscanf(path + 1, "%2x", &byte) == 1 &&
            byte != 0) {
            buf[at++] = (char)byte;
            path += 2;
        } else {
            buf[at++] = *path;
        }
    }
    buf[at] = '\0';
}

char *path_expand(char *buf, size_t n, const char *path)
{
    const char *home = getenv("HOME"), *rest = after_home(path), *file = after_file(path);

    if (rest != NULL && home != NULL)
        snprintf(buf, n, "%s%s", home, rest);
    else if (file != NULL)
        decode(buf, n, file);
    else
        snprintf(buf, n, "%s", path);
    return buf;
}

const char *path_kept(const char *path)
{
    static struct kept {
        struct kept *next;
        char path[PATH_MAX];
    } * all;
    struct kept *one;

    one = malloc(sizeof *one);
    if (one == NULL)
        return path;
    one->next = all;
    all = one;
    return path_expand(one->path, sizeof one->path, path);
}

const char *path_expanded(const char *path)
{
    return after_home(path) == NULL && after_file(path) == NULL ? path : path_kept(path);
}

/* Is c[0] a backslash that the shell would remove? */
static bool escapes(const char *c, char quote)
{
    if (c[0] != '\\' || quote == '\'' || c[1] == '\0')
        return false;
    return quote == '"' ? strchr("\"\\$`", c[1]) != NULL
                        : c[1] == ' ' || ispunct((unsigned char)c[1]);
}

/* Copy the text as the shell reads a word.  Quotes inside of a name that does not begin with one
 * belong to it.  Returns false if the text is not one word in quotes. */
static bool unquote(char *buf, size_t n, const char *text)
{
    bool is_quoted = text[0] == '\'' || text[0] == '"';
    char quote = '\0';
    size_t at = 0;

    for (const char *c = text; *c != '\0' && at + 1 < n; c++) {
        if (escapes(c, quote))
            buf[at++] = *++c;
        else if (quote != '\0' && *c == quote)
            quote = '\0';
        else if (quote == '\0' && is_quoted && (*c == '\'' || *c == '"'))
            quote = *c;
        else if (quote == '\0' && is_quoted)
            return false;
        else
            buf[at++] = *c;
    }
    buf[at] = '\0';
    return quote == '\0' && at > 0;
}

char *path_typed(char *buf, size_t n, const char *text, bool exists)
{
    char plain[PATH_MAX];

    path_expand(buf, n, text);
    if ((exists && access(buf, F_OK) == 0) || !unquote(plain, sizeof plain, text))
        return buf;
    return path_expand(buf, n, plain);
}

void path_complete(const char *path, path_add_fn *add, void *list)
{
    const char *slash = strrchr(path, '/'), *begin = slash == NULL ? path : slash + 1;
    char typed[4096], folder[4096], whole[8400];
    struct dirent **names = NULL;
    int n;

    snprintf(typed, sizeof typed, "%.*s", (int)(begin - path), path);
    path_expand(folder, sizeof folder, typed);
    n = scandir(folder[0] == '\0' ? "." : folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        struct stat st;

        if (strncmp(name, begin, strlen(begin)) == 0 && (name[0] != '.' || begin[0] == '.') &&
            strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            visible_all(name, strlen(name))) {
            int is_folder;

            snprintf(whole, sizeof whole, "%s%s", folder, name);
            is_folder = stat(whole, &st) == 0 && S_ISDIR(st.st_mode);
            snprintf(whole, sizeof whole, "%s%s%s", typed, name, is_folder ? "/" : "");
            add(list, whole);
        }
        free(names[i]);
    }
    free(names);
}
