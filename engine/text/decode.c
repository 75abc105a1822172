/* Decode ids to text, at once or one by one. */
#include "config.h"

#include <string.h>

#include "engine/base/utf8.h"
#include "engine/format/vocab_rules.h"
#include "engine/text/tokenizer_internal.h"

/* Convert U+2581 to spaces.  out may be NULL.  Returns the length. */
static size_t blocks_to_spaces(const char *text, size_t len, char *out, size_t n)
{
    size_t used = 0;

    for (size_t i = 0; i < len; used++) {
        bool is_block = len - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0;

        if (used < n)
            out[used] = is_block ? ' ' : text[i];
        i += is_block ? 3 : 1;
    }
    return used;
}

size_t tokenizer_piece(const struct tokenizer *t, uint32_t id, bool show_control, char *buf,
                       size_t n)
{
    const char *text;
    enum token_kind kind;
    size_t len;

    if (id >= t->info.n_token)
        return 0;
    text = token_text(t, id, &len);
    kind = token_kind(t, id);
    if ((kind == TOKEN_CONTROL || kind == TOKEN_UNKNOWN) && !show_control)
        return 0;
    if (kind == TOKEN_BYTE) {
        if (n > 0)
            buf[0] = (char)vocab_byte(text, len);
        return 1;
    }
    if (t->info.model != VOCAB_BPE_BYTES && kind != TOKEN_CONTROL)
        return blocks_to_spaces(text, len, buf, n);
    if (len > 0 && n > 0)
        memcpy(buf, text, len < n ? len : n);
    return len;
}

size_t decoder_push(struct decoder *d, const struct tokenizer *t, uint32_t id, char *buf)
{
    char bytes[sizeof d->held + VOCAB_MAX_TEXT];
    size_t held = d->n_held, n, used = 0, i = 0;

    n = tokenizer_piece(t, id, d->show_control, bytes + held, VOCAB_MAX_TEXT);
    if (n == 0)
        return 0;
    if (!d->is_started && t->info.add_space_prefix && t->info.model != VOCAB_BPE_BYTES &&
        bytes[held] == ' ') {
        n--;
        memmove(bytes + held, bytes + held + 1, n);
    }
    d->is_started = true;
    memcpy(bytes, d->held, held);
    n += held;
    d->n_held = 0;
    while (i < n) {
        uint32_t cp;
        size_t len = utf8_decode(bytes + i, n - i, &cp);

        if (cp == UTF8_SHORT) {
            memcpy(d->held, bytes + i, len);
            d->n_held = (uint32_t)len;
        } else if (cp == UTF8_BAD) {
            memcpy(buf + used, "\xef\xbf\xbd", 3);
            used += 3;
        } else {
            memcpy(buf + used, bytes + i, len);
            used += len;
        }
        i += len;
    }
    return used;
}

size_t decoder_end(struct decoder *d, char *buf)
{
    if (d->n_held == 0)
        return 0;
    d->n_held = 0;
    memcpy(buf, "\xef\xbf\xbd", 3);
    return 3;
}
