#include "config.h"

#include "engine/base/err.h"

#include <sys/resource.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/visible.h"

/* Returns the length of text without an incomplete character at its end. */
static size_t whole_characters(const char *text)
{
    size_t n = strlen(text), start = n > 0 ? utf8_start(text, 0, n - 1) : 0;
    uint32_t cp;

    if (n > 0 && (utf8_decode(text + start, n - start, &cp), cp == UTF8_SHORT))
        return start;
    return n;
}

__attribute__((format(printf, 4, 0))) static void store(struct err *e, enum err_code code,
                                                        int sys, const char *fmt, va_list ap)
{
    char text[sizeof e->what];

    vsnprintf(text, sizeof text, fmt, ap);
    *e = (struct err){ .code = code, .sys = sys, .offset = ERR_NO_OFFSET };
    /* Names come from files; a character at the end may be cut. */
    visible_line(e->what, sizeof e->what, text, whole_characters(text));
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    store(e, code, 0, fmt, ap);
    va_end(ap);
    return -1;
}

/* Has this process a limit of addresses?  Shells and schedulers of jobs set it, and memory seems to
 * be short while most of it is free. */
static bool has_address_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int sys = errno;
    char reason[96];
    size_t used;
    va_list ap;

    va_start(ap, fmt);
    store(e, sys == ENOMEM ? ERR_MEMORY : ERR_IO, sys, fmt, ap);
    va_end(ap);
    used = strlen(e->what);
    /* glibc's strerror_r may return a static string instead of filling reason. */
    snprintf(e->what + used, sizeof e->what - used, ": %s%s",
             strerror_r(sys, reason, sizeof reason),
             sys == ENOMEM && has_address_limit() ? "; \"ulimit -v\" limits this process" : "");
    return -1;
}

int err_memory(struct err *e, const char *fmt, ...)
{
    char what[sizeof e->what];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_MEMORY, "not enough memory for %s", what);
}

int err_at(struct err *e, const char *file, uint64_t offset, const char *field)
{
    if (file != NULL && e->file[0] == '\0')
        visible_line(e->file, sizeof e->file, file, strlen(file));
    if (field != NULL && e->field[0] == '\0')
        visible_line(e->field, sizeof e->field, field, strlen(field));
    if (offset != ERR_NO_OFFSET && e->offset == ERR_NO_OFFSET)
        e->offset = offset;
    return -1;
}

void err_text(const struct err *e, char *buf, size_t n)
{
    char at[40] = "";

    if (n == 0)
        return;
    if (e->offset != ERR_NO_OFFSET)
        snprintf(at, sizeof at, "%sat byte %llu", e->field[0] != '\0' ? " " : "",
                 (unsigned long long)e->offset);
    snprintf(buf, n, "%s%s%s%s%s%s", e->file, e->file[0] != '\0' ? ": " : "", e->field, at,
             e->field[0] != '\0' || at[0] != '\0' ? ": " : "", e->what);
}
