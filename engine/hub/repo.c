#include "config.h"

#include "engine/hub/repo.h"

#include <stdio.h>
#include <string.h>

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

int repo_parse(struct repo *out, const char *text, const char *revision, const char *endpoint,
               struct err *e)
{
    size_t n = strlen(endpoint);

    memset(out, 0, sizeof *out);
    if (strncmp(text, endpoint, n) == 0 && text[n] == '/')
        text += n + 1;
    n = strcspn(text, ":");
    if (n < sizeof out->name)
        memcpy(out->name, text, n);
    if (!cache_is_repo(out->name))
        return err_set(e, ERR_ARGUMENT,
                       "\"%.80s\" is not a repository; give ORG/NAME, for example "
                       "ggml-org/gemma-3-1b-it-GGUF",
                       text);
    if (text[n] == ':') {
        if (!cache_is_file(text + n + 1))
            return err_set(e, ERR_ARGUMENT,
                           "\"%.80s\" is not a file or a type; give one like Q4_0",
                           text + n + 1);
        snprintf(out->choice, sizeof out->choice, "%s", text + n + 1);
    }
    if (revision == NULL)
        revision = "main";
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
