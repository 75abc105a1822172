/*
 * Convert text to ids:
 *
 *     text -> cut at added tokens -> segments
 *     segment, characters: each space becomes U+2581 on the fly, cut at safe seams
 *     segment, bytes:      normal form, cut by the pattern, then at safe seams
 *     piece -> looked up among pieces seen before in this text, else merged
 *
 * The text is copied as a whole only if it is broken UTF-8.  Words repeat, so a small table
 * of pieces makes English three times faster.  Each encoder has its own table, so threads can
 * share a tokenizer.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/bpe.h"
#include "engine/text/encode_internal.h"
#include "engine/text/nfc.h"
#include "engine/text/split.h"

#define BLOCK "\xe2\x96\x81" /* U+2581 */

#define SEEN_SLOTS 4096 /* 256 KiB: fits a second-level cache */
#define SEEN_TEXT  22
#define SEEN_IDS   10
#define SEEN_FROM  1024 /* the table does not pay off for shorter texts */

/* A piece and its ids, in one cache line. */
struct seen {
    uint8_t len, n;
    char text[SEEN_TEXT];
    uint32_t id[SEEN_IDS];
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

/* Refuse a text with bytes for which the vocabulary has neither tokens nor an unknown token. */
static int refuse_bytes(const char *bytes, size_t n, struct err *e)
{
    char hex[3 * 4 + 1] = "";

    for (size_t i = 0; i < n && i < 4; i++)
        snprintf(hex + 3 * i, 4, " %02x", (unsigned char)bytes[i]);
    return err_set(
        e, ERR_UNSUPPORTED,
        "the vocabulary has no token for the character with the byte%s%s of the text, "
        "and no unknown token; leave the character out",
        n > 1 ? "s" : "", hex);
}

static bool has_bytes(const struct tokenizer *t, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t->byte_id[(unsigned char)bytes[i]] == NO_ID)
            return false;
    return true;
}

/* Convert a piece to n symbols.  A character that is not a token becomes its bytes, or the
 * unknown token if not all of them are tokens. */
static int char_symbols(const struct tokenizer *t, uint32_t *id, const char *text, size_t len,
                        bool prefix, size_t *n_out, struct err *e)
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
        if (one == NO_ID && t->lacks_bytes && !has_bytes(t, bytes, size)) {
            if (t->info.unk < 0)
                return refuse_bytes(bytes, size, e);
            one = (uint32_t)t->info.unk;
        }
        if (one != NO_ID)
            id[n++] = one;
        for (size_t k = 0; one == NO_ID && k < size; k++)
            id[n++] = t->byte_id[(unsigned char)bytes[k]];
    }
    *n_out = n;
    return 0;
}

/* Append ids of one segment.  If the vocabulary says so, a run of unknown tokens is one. */
static int put(struct encoder *x, const uint32_t *id, size_t n, struct err *e)
{
    const struct tokenizer *t = x->t;

    if (!t->lacks_bytes || !t->info.fuse_unk || t->info.unk < 0)
        return ids_append(x->out, id, n, e);
    for (size_t i = 0; i < n; i++) {
        bool is_unk = id[i] == (uint32_t)t->info.unk;

        if (!(is_unk && x->ends_unknown) && ids_push(x->out, id[i], e) != 0)
            return -1;
        x->ends_unknown = is_unk;
    }
    return 0;
}

/* Limit the memory of merging, which takes 13 bytes per symbol. */
static int check_run(const struct encoder *x, size_t len, struct err *e)
{
    return x->out->max > 0 && len > TOKENIZER_RUN_MAX
               ? err_set(e, ERR_CONTEXT,
                         "%zu bytes of text cannot be split; insert spaces or line breaks", len)
               : 0;
}

/* Merge one run.  prefix: insert U+2581 before it. */
static int merge_chars(struct encoder *x, const char *text, size_t len, bool prefix,
                       struct err *e)
{
    struct seen *s = prefix ? NULL : seen_slot(x, text, len);
    size_t n = 0;

    if (s != NULL && seen_is(s, text, len))
        return put(x, s->id, s->n, e);
    if (check_run(x, len, e) != 0 || bpe_reserve(&x->bpe, len * x->per_byte + 3, e) != 0 ||
        char_symbols(x->t, x->bpe.id, text, len, prefix, &n, e) != 0)
        return -1;
    n = bpe_run(&x->bpe, &x->t->pairs, n);
    if (s != NULL)
        seen_store(s, text, len, x->bpe.id, n);
    return put(x, x->bpe.id, n, e);
}

static bool begins_with_block(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, BLOCK, 3) == 0;
}

static bool wants_prefix(const struct tokenizer *t, const char *text, size_t len,
                         enum begins begins)
{
    const struct vocab_info *info = &t->info;

    if (!info->add_space_prefix || info->prefix_scheme == PREFIX_NEVER || len == 0)
        return false;
    if (begins == INSIDE || (info->prefix_scheme == PREFIX_FIRST && begins != AT_START))
        return false;
    return !info->prefix_unless_space || (text[0] != ' ' && (info->model == VOCAB_BPE_BYTES ||
                                                             !begins_with_block(text, len)));
}

static int encode_chars(struct encoder *x, const char *text, size_t len, enum begins begins,
                        struct err *e)
{
    const struct tokenizer *t = x->t;
    bool prefix = wants_prefix(t, text, len, begins), at_space = t->info.split_at_space;
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

/* Encode a text in which U+2581 stands for each space: as one token if it is one. */
static int encode_word(struct encoder *x, const char *text, size_t len, struct err *e)
{
    const struct tokenizer *t = x->t;

    if (t->info.ignore_merges && x->may_be_token && len <= VOCAB_MAX_TEXT) {
        uint32_t whole = token_hash_find(&t->hash, t, text, len);

        if (whole != NO_ID && token_kind(t, whole) != TOKEN_BYTE)
            return put(x, &whole, 1, e);
    }
    return encode_chars(x, text, len, INSIDE, e);
}

/* A piece of the pattern, in which U+2581 stands for each space. */
static int encode_block_piece(void *ctx, const char *text, size_t len, struct err *e)
{
    struct encoder *x = ctx;
    size_t from = 0;

    for (size_t i = 1; x->t->info.split_at_space && i < len; i++)
        if (begins_with_block(text + i, len - i)) {
            if (encode_word(x, text + from, i - from, e) != 0)
                return -1;
            from = i;
        }
    return encode_word(x, text + from, len - from, e);
}

/* Replace spaces by U+2581, with one before the text if it gets a prefix, and encode that. */
static int encode_blocks(struct encoder *x, const char *text, size_t len, enum begins begins,
                         struct err *e)
{
    const struct vocab_info *info = &x->t->info;
    bool cuts = info->pre[0] != '\0' && info->pieces == PIECES_OF_BLOCKS;
    char *copy = malloc(3 * len + 3);
    size_t n = 0;
    int rc;

    if (copy == NULL)
        return err_memory(e, "a text of %zu bytes", 3 * len + 3);
    x->may_be_token = begins != INSIDE || info->pre[0] != '\0' || info->split_at_space;
    if (wants_prefix(x->t, text, len, begins)) {
        memcpy(copy, BLOCK, 3);
        n = 3;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] != ' ') {
            copy[n++] = text[i];
            continue;
        }
        memcpy(copy + n, BLOCK, 3);
        n += 3;
    }
    rc = cuts ? split_text(x->t->split, copy, n, encode_block_piece, x, e)
              : encode_block_piece(x, copy, n, e);
    free(copy);
    return rc;
}

static int encode_piece(struct encoder *x, const char *text, size_t len, enum begins begins,
                        struct err *e)
{
    const struct vocab_info *info = &x->t->info;

    return info->ignore_merges || (info->pre[0] != '\0' && info->pieces == PIECES_OF_BLOCKS)
               ? encode_blocks(x, text, len, begins, e)
               : encode_chars(x, text, len, begins, e);
}

/* A piece of the pattern, in which spaces are spaces. */
struct text_pieces {
    struct encoder *x;
    enum begins begins; /* of the next piece */
};

static int encode_text_piece(void *ctx, const char *text, size_t len, struct err *e)
{
    struct text_pieces *p = ctx;
    int rc = encode_piece(p->x, text, len, p->begins, e);

    p->begins = p->x->t->info.prefix_scheme == PREFIX_ALWAYS ? AT_SEGMENT : INSIDE;
    return rc;
}

/* Encode a segment of a vocabulary over characters. */
static int encode_characters(struct encoder *x, const char *text, size_t len,
                             enum begins begins, struct err *e)
{
    struct text_pieces pieces = { x, begins };

    return x->t->info.pre[0] != '\0' && x->t->info.pieces == PIECES_OF_TEXT
               ? split_text(x->t->split, text, len, encode_text_piece, &pieces, e)
               : encode_piece(x, text, len, begins, e);
}

/* Convert bytes to symbols.  A byte without a token becomes the unknown token. */
static int byte_symbols(const struct tokenizer *t, uint32_t *id, const char *text, size_t n,
                        struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        id[i] = t->byte_id[(unsigned char)text[i]];
        if (id[i] != NO_ID)
            continue;
        if (t->info.unk < 0)
            return refuse_bytes(text + i, 1, e);
        id[i] = (uint32_t)t->info.unk;
    }
    return 0;
}

/* Encode one piece of the pattern: as one token if it is one, else by merging. */
static int merge_bytes(void *ctx, const char *text, size_t len, struct err *e)
{
    struct encoder *x = ctx;
    const struct tokenizer *t = x->t;
    struct seen *s = t->lacks_bytes ? NULL : seen_slot(x, text, len);
    size_t start = x->out->n, from = 0;

    if (s != NULL && seen_is(s, text, len))
        return ids_append(x->out, s->id, s->n, e);
    if (t->info.ignore_merges && x->may_be_token && len <= VOCAB_MAX_TEXT) {
        uint32_t whole = token_hash_find(&t->hash, t, text, len);

        if (whole != NO_ID && token_kind(t, whole) == TOKEN_NORMAL)
            return put(x, &whole, 1, e);
    }
    for (size_t i = 1; i <= len; i++) {
        size_t n = i - from;

        if (i < len && seam_has(t->seams, seam_of_bytes((unsigned char)text[i - 1],
                                                        (unsigned char)text[i])))
            continue;
        if (check_run(x, n, e) != 0 || bpe_reserve(&x->bpe, n, e) != 0 ||
            byte_symbols(t, x->bpe.id, text + from, n, e) != 0)
            return -1;
        n = bpe_run(&x->bpe, &t->pairs, n);
        if (put(x, x->bpe.id, n, e) != 0)
            return -1;
        from = i;
    }
    if (s != NULL)
        seen_store(s, text, len, x->out->id + start, x->out->n - start);
    return 0;
}

/* Encode a segment of a byte-level vocabulary. */
static int encode_bytes(struct encoder *x, const char *text, size_t len, enum begins begins,
                        struct err *e)
{
    char *copy;
    int rc;

    x->may_be_token = begins != INSIDE || split_words(x->t->split) != WORDS_KEPT;
    if (!wants_prefix(x->t, text, len, begins))
        return split_text(x->t->split, text, len, merge_bytes, x, e);
    copy = malloc(len + 1);
    if (copy == NULL)
        return err_memory(e, "a text of %zu bytes", len);
    copy[0] = ' ';
    memcpy(copy + 1, text, len);
    rc = split_text(x->t->split, copy, len + 1, merge_bytes, x, e);
    free(copy);
    return rc;
}

/* Normalise one segment, cut it into pieces, and merge these. */
static int encode_segment(struct encoder *x, const char *text, size_t len, enum begins begins,
                          struct err *e)
{
    const struct tokenizer *t = x->t;
    char *form = NULL;
    size_t n = 0;
    int rc;

    if (len == 0)
        return 0;
    if (begins != INSIDE)
        x->ends_unknown = false;
    if (t->info.nfc && nfc_text(text, len, &form, &n, e) != 0)
        return -1;
    if (form == NULL)
        n = len;
    rc = t->info.model != VOCAB_BPE_BYTES
             ? encode_characters(x, form != NULL ? form : text, n, begins, e)
             : encode_bytes(x, form != NULL ? form : text, n, begins, e);
    free(form);
    return rc;
}

/* Returns the end of text[from..to) without white space that the next token absorbs. */
static size_t strip_end(const char *text, size_t from, size_t to)
{
    while (to > from) {
        size_t last = utf8_start(text, from, to - 1);
        uint32_t cp;

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

const struct added *encoder_added(const struct encoder *x)
{
    return x->parse_special ? &x->t->all : &x->t->plain;
}

static int encode_all(struct encoder *x, const char *text, size_t len, enum begins begins,
                      struct err *e)
{
    const struct tokenizer *t = x->t;
    const struct added *added = encoder_added(x);
    size_t from = 0, at, n;
    uint32_t id;

    while (added_find(added, t, text, from, len, &at, &n, &id)) {
        size_t end = at;

        if ((t->flag[id] & FLAG_LSTRIP) != 0)
            end = strip_end(text, from, at);
        if (encode_segment(x, text + from, end - from, from == 0 ? begins : AT_SEGMENT, e) !=
                0 ||
            ids_push(x->out, id, e) != 0)
            return -1;
        x->ends_unknown = false;
        from = at + n;
        if ((t->flag[id] & FLAG_RSTRIP) != 0)
            from = strip_start(text, from, len);
    }
    return encode_segment(x, text + from, len - from, from == 0 ? begins : AT_SEGMENT, e);
}

int encoder_encode(struct encoder *x, const char *text, size_t len, enum begins begins,
                   struct err *e)
{
    char *copy;
    size_t n;
    int rc;

    if (utf8_is_valid(text, len))
        return encode_all(x, text, len, begins, e);
    n = utf8_repair(text, len, NULL);
    copy = malloc(n);
    if (copy == NULL)
        return err_memory(e, "a text of %zu bytes", n);
    utf8_repair(text, len, copy);
    rc = encode_all(x, copy, n, begins, e);
    free(copy);
    return rc;
}

int encoder_start(struct encoder *x, const struct tokenizer *t, bool parse_special,
                  bool has_table, struct err *e)
{
    size_t bytes = SEEN_SLOTS * sizeof *x->seen;

    *x = (struct encoder){ .t = t, .parse_special = parse_special };
    x->per_byte =
        t->info.model == VOCAB_BPE_BYTES || char_ids_find(&t->chars, BLOCK_CP) != NO_ID ? 1 : 3;
    if (!has_table)
        return 0;
    if (arena_map(&x->table, "text", arena_size(bytes), false, e) != 0)
        return -1;
    x->seen = arena_take(&x->table, bytes, e);
    return x->seen != NULL ? 0 : -1;
}

void encoder_finish(struct encoder *x)
{
    bpe_free(&x->bpe);
    arena_unmap(&x->table);
    free(x->pending);
}

static int encode(const struct tokenizer *t, const char *text, size_t len, bool parse_special,
                  enum begins begins, struct ids *out, struct err *e)
{
    struct encoder x;
    size_t before = out->n;
    int rc = encoder_start(&x, t, parse_special, len >= SEEN_FROM, e);

    x.out = out;
    if (rc == 0)
        rc = encoder_encode(&x, text, len, begins, e);
    encoder_finish(&x);
    if (rc != 0)
        out->n = before;
    return rc;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                     bool parse_special, bool is_start, struct ids *out, struct err *e)
{
    return encode(t, text, len, parse_special, is_start ? AT_START : AT_SEGMENT, out, e);
}

int tokenizer_encode_on(const struct tokenizer *t, const char *text, size_t len,
                        struct ids *out, struct err *e)
{
    return encode(t, text, len, false, INSIDE, out, e);
}

bool tokenizer_next_control(const struct tokenizer *t, const char *text, size_t from,
                            size_t len, size_t *at, size_t *n, uint32_t *id)
{
    while (added_find(&t->all, t, text, from, len, at, n, id)) {
        if (token_kind(t, *id) == TOKEN_CONTROL)
            return true;
        from = *at + *n;
    }
    return false;
}
