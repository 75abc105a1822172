#include "config.h"

#include "engine/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copy s without control characters: names come from files and may contain escapes. */
static void copy_visible(char *dst, size_t n, const char *s)
{
    size_t i = 0;

    for (; s[i] != '\0' && i + 1 < n; i++) {
        unsigned char c = (unsigned char)s[i];

        dst[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
    }
    dst[i] = '\0';
}

__attribute__((format(printf, 4, 0))) static void store(struct err *e, enum err_code code,
                                                        int sys, const char *fmt, va_list ap)
{
    char text[sizeof e->what];

    vsnprintf(text, sizeof text, fmt, ap);
    *e = (struct err){ .code = code, .sys = sys, .offset = ERR_NO_OFFSET };
    copy_visible(e->what, sizeof e->what, text);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    store(e, code, 0, fmt, ap);
    va_end(ap);
    return -1;
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
    snprintf(e->what + used, sizeof e->what - used, ": %s",
             strerror_r(sys, reason, sizeof reason));
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
        copy_visible(e->file, sizeof e->file, file);
    if (field != NULL && e->field[0] == '\0')
        copy_visible(e->field, sizeof e->field, field);
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
