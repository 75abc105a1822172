/* Names of pieces of files that were cut by bytes, and of downloads that have not ended. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/visible.h"
#include "engine/format/foreign_files.h"
#include "engine/format/hparams_fill.h"

#define MAX_PIECE 9999

/* Returns what follows the end of a whole file's name (".gguf", …), or NULL. */
static const char *after_whole(const char *name)
{
    static const char *const ends[] = { ".gguf", ".safetensors", ".bin" };
    const char *found = NULL;

    for (const char *at = name; *at != '\0'; at++)
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
            if (strncasecmp(at, ends[i], strlen(ends[i])) == 0)
                found = at + strlen(ends[i]);
    return found;
}

static const char *skip_marks(const char *p)
{
    return p + strspn(p, ".-_ (");
}

/* Skips a word for a piece; *has is whether there is one. */
static const char *skip_word(const char *p, bool *has)
{
    static const char *const words[] = { "part", "split", "chunk", "piece" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncasecmp(p, words[i], strlen(words[i])) == 0) {
            *has = true;
            return skip_marks(p + strlen(words[i]));
        }
    return p;
}

static const char *number(const char *p, unsigned *v)
{
    char *end;
    unsigned long n = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : MAX_PIECE + 1ul;

    if (n > MAX_PIECE)
        return NULL;
    *v = (unsigned)n;
    return end;
}

struct piece {
    size_t n_before; /* bytes of the name before the number or the letters */
    size_t n_whole;  /* bytes of the complete file's name */
    unsigned i, of;  /* of: 0 if the name does not say it; i too, for letters */
};

/* Parses "part1of2", " (1 of 2)", "-split-a", ".001", ".aa" from tail on, a part of the name. */
static bool parse_at(const char *name, const char *tail, bool is_whole, struct piece *p)
{
    bool has_word = false;
    const char *at = skip_word(skip_marks(tail), &has_word), *end;

    *p = (struct piece){ .of = 0 };
    if (*tail == '\0' || skip_marks(tail) == tail)
        return false;
    p->n_whole = (size_t)(tail - name);
    p->n_before = (size_t)(at - name);
    end = number(at, &p->i);
    if (end != NULL) {
        size_t n_digit = (size_t)(end - at);

        if (strncasecmp(end = skip_marks(end), "of", 2) == 0)
            end = number(skip_marks(end + 2), &p->of);
        end += end != NULL && *end == ')';
        return end != NULL && *end == '\0' &&
               (is_whole || has_word || p->of > 0 || n_digit >= 3);
    }
    return (is_whole || has_word) && islower((unsigned char)at[0]) &&
           (at[1] == '\0' || (islower((unsigned char)at[1]) && at[2] == '\0'));
}

/* Finds the end that shows a piece: after ".gguf", after the last ".", or, of a name that still
 * ends in ".gguf", at a word for a piece or at "1 of 2". */
static bool parse(char *name, struct piece *p, const char **ending)
{
    const char *tail = after_whole(name), *dot = strrchr(name, '.');

    *ending = "";
    if (tail == NULL)
        return dot != NULL && parse_at(name, dot, false, p);
    if (*tail != '\0')
        return parse_at(name, tail, true, p) || (dot > tail && parse_at(name, dot, false, p));
    *ending = dot;
    for (const char *at = name; at < dot; at++) {
        bool has_word = false, is_piece;

        skip_word(skip_marks(at), &has_word);
        if (skip_marks(at) == at)
            continue;
        name[dot - name] = '\0';
        is_piece = parse_at(name, at, false, p) && (has_word || (p->of > 0 && p->of < 100));
        name[dot - name] = '.';
        if (is_piece)
            return true;
    }
    return false;
}

static bool is_download(const char *name)
{
    static const char *const ends[] = { ".part",       ".partial", ".crdownload", ".download",
                                        ".incomplete", ".aria2",   ".tmp",        ".!qB",
                                        ".opdownload", ".downloading", ".xltd", ".bc!" };
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t m = strlen(ends[i]);

        if (n > m && strcasecmp(name + n - m, ends[i]) == 0)
            return true;
    }
    return false;
}

bool foreign_piece_is(const char *path, char *buf, size_t n)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char before[72], whole[72], which[40] = "a piece", *copy;
    const char *ending = "";
    struct piece p;
    bool is_piece;

    if (is_download(name)) {
        snprintf(buf, n,
                 "the name is that of a download that has not ended; fetch the file "
                 "completely");
        return true;
    }
    copy = strdup(name);
    is_piece = copy != NULL && parse(copy, &p, &ending);
    if (is_piece) {
        visible_line(before, sizeof before, name, p.n_before);
        visible_line(whole, sizeof whole, name, p.n_whole);
        ending = ending[0] != '\0' ? strrchr(name, '.') : "";
    }
    free(copy);
    if (!is_piece)
        return false;
    if (p.of > 0)
        snprintf(which, sizeof which, "part %u of %u", p.i, p.of);
    snprintf(buf, n,
             "the file is %s of a file that was cut; join all parts in order: cat "
             "\"%s\"* > \"%s%s\"",
             which, before, whole, ending);
    return true;
}
