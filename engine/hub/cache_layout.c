#include "config.h"

#include "engine/hub/cache_layout.h"

#include <stdio.h>
#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/base/visible.h"

#define FOLDER_BEGIN "models--"

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Is s[0..n) one half of a repository's name? */
static bool is_repo_part(const char *s, size_t n)
{
    if (n == 0 || n > 96 || s[0] == '-' || s[0] == '.' || s[n - 1] == '-' || s[n - 1] == '.')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_letter_or_digit(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
        if (i > 0 && s[i] == s[i - 1] && (s[i] == '-' || s[i] == '.'))
            return false;
    }
    return true;
}

bool cache_is_repo(const char *text)
{
    size_t n = strcspn(text, "/");

    if (text[n] == '\0')
        return is_repo_part(text, n);
    return is_repo_part(text, n) && is_repo_part(text + n + 1, strlen(text + n + 1));
}

/* White space other than a blank looks like one. */
static bool is_unseen(uint32_t cp)
{
    return !visible_is(cp) || (cp != ' ' && utf8_is_white(cp));
}

/* An emoji may be followed by the selector of its coloured form. */
static bool is_emoji_form(uint32_t before, uint32_t cp)
{
    return cp == 0xfe0f && utf8proc_category((utf8proc_int32_t)before) == UTF8PROC_CATEGORY_SO;
}

static bool is_name(const char *s, size_t n)
{
    uint32_t before = 0;

    if (n == 0 || n > CACHE_MAX_NAME || s[0] == '.')
        return false;
    for (size_t at = 0; at < n;) {
        uint32_t cp;

        at += utf8_decode(s + at, n - at, &cp);
        if (cp == '/' || cp >= UTF8_SHORT || (is_unseen(cp) && !is_emoji_form(before, cp)))
            return false;
        before = cp;
    }
    return true;
}

bool cache_is_name(const char *text)
{
    return is_name(text, strlen(text));
}

bool cache_is_file(const char *text)
{
    if (strlen(text) > CACHE_MAX_FILE)
        return false;
    for (int depth = 0; depth <= CACHE_MAX_DEPTH; depth++) {
        size_t n = strcspn(text, "/");

        if (!is_name(text, n))
            return false;
        if (text[n] == '\0')
            return true;
        text += n + 1;
    }
    return false;
}

bool cache_is_digest(const char *text)
{
    size_t n = strspn(text, "0123456789abcdef");

    return (n == 40 || n == 64) && text[n] == '\0';
}

void cache_folder_of(const char *repo, char *buf, size_t n)
{
    size_t org = strcspn(repo, "/");

    if (repo[org] == '\0')
        snprintf(buf, n, FOLDER_BEGIN "%s", repo);
    else
        snprintf(buf, n, FOLDER_BEGIN "%.*s--%s", (int)org, repo, repo + org + 1);
}

bool cache_repo_of(const char *folder, char repo[CACHE_MAX_REPO + 1])
{
    const char *name, *dashes;

    if (strncmp(folder, FOLDER_BEGIN, strlen(FOLDER_BEGIN)) != 0)
        return false;
    name = folder + strlen(FOLDER_BEGIN);
    dashes = strstr(name, "--");
    if (strlen(name) > CACHE_MAX_REPO)
        return false;
    if (dashes == NULL)
        snprintf(repo, CACHE_MAX_REPO + 1, "%s", name);
    else
        snprintf(repo, CACHE_MAX_REPO + 1, "%.*s/%s", (int)(dashes - name), name, dashes + 2);
    return cache_is_repo(repo);
}

int cache_path(char *buf, size_t n, const char *cache, const char *repo, enum cache_part part,
               const char *name, struct err *e)
{
    static const char *const folders[] = { [CACHE_REPO] = "",
                                           [CACHE_REFS] = "/refs",
                                           [CACHE_SNAPSHOTS] = "/snapshots",
                                           [CACHE_BLOBS] = "/blobs" };
    char folder[CACHE_MAX_REPO + 16];
    int len;

    cache_folder_of(repo, folder, sizeof folder);
    len = snprintf(buf, n, "%s/%s%s%s%s", cache, folder, folders[part], name != NULL ? "/" : "",
                   name != NULL ? name : "");
    if (len < 0 || (size_t)len >= n)
        return err_set(e, ERR_ARGUMENT, "the path of %.100s in the hub's cache is too long",
                       repo);
    return 0;
}
