/*
 * utf8proc uses four bytes per character while it works, so it gets only the parts that need
 * it.  An ASCII character never joins the character before it, so the text may be cut before
 * each of them.  The next character may join it, so the last ASCII character belongs to the
 * part that is normalised:
 *
 *     plain wor|ds e\u0301\u00e9|, more
 *              copied    ^^^^^^^^ normalised
 */
#include "config.h"

#include "engine/text/nfc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

struct out {
    char *text;
    size_t n, room;
};

static int put(struct out *o, const char *text, size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    if (n > o->room - o->n) {
        size_t room = (o->n + n) + (o->n + n) / 4 + 64;
        char *more = realloc(o->text, room);

        if (more == NULL)
            return err_memory(e, "a text of %zu bytes", room);
        o->text = more;
        o->room = room;
    }
    memcpy(o->text + o->n, text, n);
    o->n += n;
    return 0;
}

static int put_normalised(struct out *o, const char *text, size_t n, struct err *e)
{
    utf8proc_uint8_t *form;
    utf8proc_ssize_t got = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n,
                                        &form, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    int rc;

    if (got < 0)
        return err_set(e, got == UTF8PROC_ERROR_NOMEM ? ERR_MEMORY : ERR_FORMAT,
                       "cannot normalise the text: %s", utf8proc_errmsg(got));
    rc = put(o, (const char *)form, (size_t)got, e);
    free(form);
    return rc;
}

static bool is_ascii(char c)
{
    return (unsigned char)c < 0x80;
}

int nfc_text(const char *text, size_t len, char **out, size_t *n, struct err *e)
{
    struct out o = { 0 };
    size_t from = 0; /* everything before it is done */

    *out = NULL;
    *n = 0;
    while (from < len) {
        size_t odd = from, end;

        while (odd < len && is_ascii(text[odd]))
            odd++;
        if (odd == len && from == 0)
            return 0;
        end = odd;
        odd -= odd > from && odd < len ? 1 : 0;
        while (end < len && !is_ascii(text[end]))
            end++;
        if (put(&o, text + from, odd - from, e) != 0 ||
            (end > odd && put_normalised(&o, text + odd, end - odd, e) != 0)) {
            free(o.text);
            return -1;
        }
        from = end;
    }
    *out = o.text;
    *n = o.n;
    return 0;
}
