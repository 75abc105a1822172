/* See eval_ids.h. */
#include "config.h"

#include "src/eval_ids.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/prompt.h"

#define IDS_MAX_BYTES ((size_t)256 << 20)

static bool is_between(char c)
{
    return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Parse text into ids, which has room for n / 2 + 1 of them.  Returns how many, or -1. */
static ptrdiff_t parse(const char *path, const char *text, size_t n, uint32_t n_vocab,
                       uint32_t *ids, struct err *e)
{
    ptrdiff_t n_id = 0;

    for (size_t i = 0; i < n;) {
        size_t from = i;
        uint64_t id = 0;

        if (is_between(text[i])) {
            i++;
            continue;
        }
        for (; i < n && isdigit((unsigned char)text[i]); i++)
            if (id <= UINT32_MAX)
                id = id * 10 + (uint64_t)(text[i] - '0');
        if (i == from || (i < n && !is_between(text[i]))) {
            err_set(e, ERR_FORMAT, "\"%.20s\" does not begin with a token id", text + from);
            return err_at(e, path, from, NULL);
        }
        if (id >= n_vocab) {
            err_set(e, ERR_FORMAT, "token id %.*s is outside the vocabulary of %u",
                    (int)(i - from < 20 ? i - from : 20), text + from, n_vocab);
            return err_at(e, path, from, NULL);
        }
        ids[n_id++] = (uint32_t)id;
    }
    return n_id;
}

int eval_ids_parse(const char *name, const char *text, size_t n, uint32_t n_vocab,
                   uint32_t **out, size_t *n_id, struct err *e)
{
    ptrdiff_t got;

    *out = malloc((n / 2 + 1) * sizeof **out);
    if (*out == NULL)
        return err_set(e, ERR_MEMORY, "no memory for the ids");
    got = parse(name, text, n, n_vocab, *out, e);
    if (got < 0) {
        free(*out);
        *out = NULL;
        return -1;
    }
    *n_id = (size_t)got;
    return 0;
}

int eval_ids_read(const char *path, uint32_t n_vocab, uint32_t **out, size_t *n, struct err *e)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    char *text = NULL;
    size_t len = 0;
    int rc;

    *out = NULL;
    if (prompt_read_file(path, IDS_MAX_BYTES, &text, &len, e) != 0)
        return -1;
    rc = eval_ids_parse(name, text, len, n_vocab, out, n, e);
    free(text);
    if (rc == 0 && *n == 0) {
        free(*out);
        *out = NULL;
        err_set(e, ERR_FORMAT, "holds no token ids");
        rc = err_at(e, name, ERR_NO_OFFSET, NULL);
    }
    return rc;
}
