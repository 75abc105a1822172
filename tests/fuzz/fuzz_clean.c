/* Any foreign text, cut into any pieces, becomes harmless text. */
#include "config.h"

#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <utf8proc.h>

#include "ui/words/clean.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sink {
    const char *in;
    char *text;
    size_t n, room, src;
};

static void take(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                 enum clean_kind kind)
{
    struct sink *s = ctx;

    if (n == 0 || src < s->src || s->n + n > s->room)
        abort();
    if (kind == CLEAN_SAME && (n != src_n || memcmp(text, s->in + src, n) != 0))
        abort();
    s->src = src + src_n;
    memcpy(s->text + s->n, text, n);
    s->n += n;
}

static void check_harmless(const char *s, size_t n)
{
    unsigned zero = 0;

    for (size_t at = 0; at < n;) {
        int32_t cp;
        utf8proc_ssize_t used =
            utf8proc_iterate((const uint8_t *)s + at, (utf8proc_ssize_t)(n - at), &cp);
        int width = used > 0 ? wcwidth((wchar_t)cp) : -1;

        if (used <= 0 || (cp != '\n' && width < 0) || (cp >= 0x202a && cp <= 0x202e) ||
            (cp >= 0x2066 && cp <= 0x2069))
            abort();
        /* A cluster has a maximum length. */
        zero = width == 0 ? zero + 1 : 0;
        if (zero > 64)
            abort();
        at += (size_t)used;
    }
}

static struct sink begin(const char *in, size_t size)
{
    struct sink s = { .in = in, .room = 4 * size + 16 };

    s.text = malloc(s.room);
    if (s.text == NULL)
        exit(1);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *locale;
    const char *in = (const char *)data;
    struct sink whole = begin(in, size), cut = begin(in, size);
    enum clean_how how = size > 0 && data[0] % 2 != 0 ? CLEAN_CODE : CLEAN_TEXT;
    struct clean c;
    char small[64];

    if (locale == NULL)
        locale = setlocale(LC_CTYPE, "C.UTF-8");
    clean_start(&c, how);
    clean_feed(&c, in, size, take, &whole);
    clean_end(&c, take, &whole);
    check_harmless(whole.text, whole.n);
    for (size_t at = 0, step; at < size; at += step) {
        step = 1 + data[at] % 5;
        step = step > size - at ? size - at : step;
        clean_feed(&c, in + at, step, take, &cut);
    }
    clean_end(&c, take, &cut);
    if (whole.n != cut.n || memcmp(whole.text, cut.text, cut.n) != 0)
        abort();
    if (clean_line(small, sizeof small, in, size) >= sizeof small ||
        strlen(small) >= sizeof small || strchr(small, '\n') != NULL)
        abort();
    check_harmless(small, strlen(small));
    free(whole.text);
    free(cut.text);
    return 0;
}
