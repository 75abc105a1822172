/*
 * Text to ids:
 *
 *     text -> cut at added tokens -> segments
 *     segment, characters: each space becomes U+2581 on the fly, cut at safe seams
 *     segment, bytes:      normal form, cut by the pattern, then at safe seams
 *     piece -> looked up among pieces seen before in this text, else merged
 *
 * The text is never copied whole unless it is broken UTF-8.  Words repeat, so the small
 * table of pieces makes English three times faster; it lives as long as one call, so that
 * a tokenizer can be shared by threads.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/bpe.h"
#include "engine/text/nfc.h"
#include "engine/text/split.h"
#include "engine/text/tokenizer_internal.h"
#include "engine/text/utf8.h"

#define SEEN_SLOTS 4096 /* 256 KiB: fits a second-level cache */
#define SEEN_TEXT  22
#define SEEN_IDS   10
#define SEEN_FROM  1024 /* shorter texts are not worth the table */

/* A piece and its ids: one cache line. */
struct seen {
    uint8_t len, n;
    char text[SEEN_TEXT];
    uint32_t id[SEEN_IDS];
};

struct encoder {
    const struct tokenizer *t;
    struct ids *out;
    struct bpe bpe;
    struct arena table;
    struct seen *seen; /* [SEEN_SLOTS] or NULL */
    size_t per_byte;   /* symbols that a byte can give: 3 where U+2581 is no token */
};

static struct seen *seen_slot(const struct encoder *x, const char *text, size_t len)
{
    uint64_t word[3] = { 0, 0, len };
    uint64_t h;

    if (x->seen == NULL || len > SEEN_TEXT)
        return NULL;
    memcpy(word, text, len < 16 ? len : 16);
    if (len > 16) {
        uint64_t tail = 0;

        memcpy(&tail, text + 16, len - 16);
        word[2] ^= tail << 8;
    }
    h = (word[0] * 0x9e3779b97f4a7c15u) ^ (word[1] * 0xc2b2ae3d27d4eb4fu) ^
        (word[2] * 0x165667b19e3779f9u);
    h ^= h >> 29;
    h *= 0x9e3779b97f4a7c15u;
    return &x->seen[h >> 52 & (SEEN_SLOTS - 1)];
}

static bool seen_is(const struct seen *s, const char *text, size_t len)
{
    return s->len == len && memcmp(s->text, text, len) == 0;
}

static void seen_store(struct seen *s, const char *text, size_t len, const uint32_t *id,
                       size_t n)
{
    if (n > SEEN_IDS)
        return;
    s->len = (uint8_t)len;
    s->n = (uint8_t)n;
    memcpy(s->text, text, len);
    memcpy(s->id, id, n * sizeof *id);
}

/* Characters of a piece to symbols; a character that is no token becomes its bytes. */
static size_t char_symbols(const struct tokenizer *t, uint32_t *id, const char *text,
                           size_t len, bool prefix)
{
    size_t n = 0;

    for (size_t i = 0; i < len || prefix;) {
        char block[4];
        const char *bytes = text + i;
        uint32_t cp = BLOCK_CP, one;
        size_t size = 0;

        if (!prefix)
            size = utf8_decode(text + i, len - i, &cp);
        i += size;
        prefix = false;
        if (cp == ' ' || size == 0) {
            cp = BLOCK_CP;
            size = utf8_encode(cp, block);
            bytes = block;
        }
        one = char_ids_find(&t->chars, cp);
        if (one != NO_ID)
            id[n++] = one;
        for (size_t k = 0; one == NO_ID && k < size; k++)
            id[n++] = t->byte_id[(unsigned char)bytes[k]];
    }
    return n;
}

/* One run of merging.  prefix: a U+2581 stands in front. */
static int merge_chars(struct encoder *x, const char *text, size_t len, bool prefix,
                       struct err *e)
{
    struct seen *s = prefix ? NULL : seen_slot(x, text, len);
    size_t n;

    if (s != NULL && seen_is(s, text, len))
        return ids_append(x->out, s->id, s->n, e);
    if (bpe_reserve(&x->bpe, len * x->per_byte + 3, e) != 0)
        return -1;
    n = char_symbols(x->t, x->bpe.id, text, len, prefix);
    n = bpe_run(&x->bpe, &x->t->pairs, n);
    if (s != NULL)
        seen_store(s, text, len, x->bpe.id, n);
    return ids_append(x->out, x->bpe.id, n, e);
}

static bool wants_prefix(const struct tokenizer *t, const char *text, size_t len, bool is_start)
{
    const struct vocab_info *info = &t->info;

    if (!info->add_space_prefix || info->prefix_scheme == PREFIX_NEVER || len == 0)
        return false;
    if (info->prefix_scheme == PREFIX_FIRST && !is_start)
        return false;
    return !info->prefix_unless_space ||
           (text[0] != ' ' && (len < 3 || memcmp(text, "\xe2\x96\x81", 3) != 0));
}

static int encode_chars(struct encoder *x, const char *text, size_t len, bool is_start,
                        struct err *e)
{
    const struct tokenizer *t = x->t;
    bool prefix = wants_prefix(t, text, len, is_start), at_space = t->info.split_at_space;
    uint32_t before = prefix ? BLOCK_CP : UTF8_BAD;
    size_t from = 0;

    for (size_t i = 0; i < len;) {
        uint32_t cp = (unsigned char)text[i];
        size_t size = 1;

        if (cp >= 0x80)
            size = utf8_decode(text + i, len - i, &cp);
        else if (cp == ' ')
            cp = BLOCK_CP;
        if (before != UTF8_BAD &&
            ((at_space && cp == BLOCK_CP) || !seam_has(t->seams, seam_of_chars(before, cp)))) {
            if (merge_chars(x, text + from, i - from, prefix, e) != 0)
                return -1;
            from = i;
            prefix = false;
        }
        before = cp;
        i += size;
    }
    return len > from || prefix ? merge_chars(x, text + from, len - from, prefix, e) : 0;
}

/* A piece of the pattern: the whole of it may be a token, else it is merged. */
static int merge_bytes(void *ctx, const char *text, size_t len, struct err *e)
{
    struct encoder *x = ctx;
    const struct tokenizer *t = x->t;
    struct seen *s = seen_slot(x, text, len);
    size_t start = x->out->n, from = 0;

    if (s != NULL && seen_is(s, text, len))
        return ids_append(x->out, s->id, s->n, e);
    if (t->info.ignore_merges && len <= VOCAB_MAX_TEXT) {
        uint32_t whole = token_hash_find(&t->hash, t, text, len);

        if (whole != NO_ID && token_kind(t, whole) == TOKEN_NORMAL)
            return ids_push(x->out, whole, e);
    }
    for (size_t i = 1; i <= len; i++) {
        size_t n = i - from;

        if (i < len && seam_has(t->seams, seam_of_bytes((unsigned char)text[i - 1],
                                                        (unsigned char)text[i])))
            continue;
        if (bpe_reserve(&x->bpe, n, e) != 0)
            return -1;
        for (size_t k = 0; k < n; k++)
            x->bpe.id[k] = t->byte_id[(unsigned char)text[from + k]];
        n = bpe_run(&x->bpe, &t->pairs, n);
        if (ids_append(x->out, x->bpe.id, n, e) != 0)
            return -1;
        from = i;
    }
    if (s != NULL)
        seen_store(s, text, len, x->out->id + start, x->out->n - start);
    return 0;
}

/* Normal form and pattern of one segment. */
static int encode_bytes(struct encoder *x, const char *text, size_t len, struct err *e)
{
    char *form = NULL;
    size_t n = 0;
    int rc = x->t->info.nfc ? nfc_text(text, len, &form, &n, e) : 0;

    if (rc == 0 && form != NULL)
        rc = split_text(x->t->split, form, n, merge_bytes, x, e);
    else if (rc == 0)
        rc = split_text(x->t->split, text, len, merge_bytes, x, e);
    free(form);
    return rc;
}

static int encode_segment(struct encoder *x, const char *text, size_t len, bool is_start,
                          struct err *e)
{
    const struct tokenizer *t = x->t;

    if (len == 0)
        return 0;
    if (t->info.model != VOCAB_BPE_BYTES)
        return encode_chars(x, text, len, is_start, e);
    return encode_bytes(x, text, len, e);
}

/* The end of text[from..to) without the white space that a token behind it swallows. */
static size_t strip_end(const char *text, size_t from, size_t to)
{
    while (to > from) {
        size_t last = to - 1;
        uint32_t cp;

        while (last > from && ((unsigned char)text[last] & 0xc0) == 0x80)
            last--;
        utf8_decode(text + last, to - last, &cp);
        if (!utf8_is_white(cp))
            break;
        to = last;
    }
    return to;
}

static size_t strip_start(const char *text, size_t from, size_t to)
{
    while (from < to) {
        uint32_t cp;
        size_t n = utf8_decode(text + from, to - from, &cp);

        if (!utf8_is_white(cp))
            break;
        from += n;
    }
    return from;
}

static int encode_all(struct encoder *x, const char *text, size_t len, bool parse_special,
                      bool is_start, struct err *e)
{
    const struct tokenizer *t = x->t;
    const struct added *added = parse_special ? &t->all : &t->plain;
    size_t from = 0, at, n;
    uint32_t id;

    while (added_find(added, t, text, from, len, &at, &n, &id)) {
        size_t end = at;

        if ((t->flag[id] & FLAG_LSTRIP) != 0)
            end = strip_end(text, from, at);
        if (encode_segment(x, text + from, end - from, is_start && from == 0, e) != 0 ||
            ids_push(x->out, id, e) != 0)
            return -1;
        from = at + n;
        if ((t->flag[id] & FLAG_RSTRIP) != 0)
            from = strip_start(text, from, len);
    }
    return encode_segment(x, text + from, len - from, is_start && from == 0, e);
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                     bool parse_special, bool is_start, struct ids *out, struct err *e)
{
    struct encoder x = { .t = t, .out = out };
    size_t before = out->n;
    char *copy = NULL;
    int rc = 0;

    if (!utf8_is_valid(text, len)) {
        size_t n = utf8_repair(text, len, NULL);

        copy = malloc(n);
        if (copy == NULL)
            return err_set(e, ERR_MEMORY, "no memory for a text of %zu bytes", n);
        utf8_repair(text, len, copy);
        text = copy;
        len = n;
    }
    x.per_byte =
        t->info.model == VOCAB_BPE_BYTES || char_ids_find(&t->chars, BLOCK_CP) != NO_ID ? 1 : 3;
    if (len >= SEEN_FROM) {
        size_t bytes = SEEN_SLOTS * sizeof *x.seen;

        rc = arena_map(&x.table, "text", arena_size(bytes), false, e);
        x.seen = rc == 0 ? arena_take(&x.table, bytes, e) : NULL;
    }
    if (rc == 0)
        rc = encode_all(&x, text, len, parse_special, is_start, e);
    bpe_free(&x.bpe);
    arena_unmap(&x.table);
    free(copy);
    if (rc != 0)
        out->n = before;
    return rc;
}
