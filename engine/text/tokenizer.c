/*
 * Build a tokenizer from the events of a vocabulary.
 *
 * Tokens come first and are stored at their final position.  A table of their texts then
 * turns each merge into three ids.  When the number of merges is known, the tables for
 * encoding are allocated and filled, and the temporary memory is freed.
 */
#include "config.h"

#include "engine/text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/format/vocab_rules.h"
#include "engine/text/mark_words.h"
#include "engine/text/split.h"
#include "engine/text/tokenizer_internal.h"

#define LOOK_EVERY 1024 /* tokens or merges between two checks for cancelling */

/*
 * The last merges, whose tokens are still looked up.  A lookup reads a slot of the hash table,
 * then the place of a text, then the text, and waits for memory each time.  With eight merges
 * on their way, all merges of Gemma take 0.7 times as long.
 */
enum { N_LAST = 8, PLACE_AGE = 4, TEXT_AGE = 6 };
enum { LEFT, RIGHT, MERGED, N_WORD };

struct merge {
    char text[2 * VOCAB_MAX_TEXT]; /* left, then right */
    size_t n_left, n_right;
    uint32_t hash[N_WORD];
};

struct build {
    struct tokenizer *t;
    const struct catalogue *from;
    uint32_t n_token; /* read so far */
    size_t used;      /* bytes of texts so far */
    struct arena tmp;
    float *score; /* [n_token]; only for vocabularies with scores */
    struct token_hash hash;
    struct pair_list list;
    bool is_ready; /* hash and byte_id are complete */
    struct mark_words marks;
    uint32_t n_repaired;
    struct merge last[N_LAST];
    uint32_t n_merge; /* read so far; list has those that are finished */
};

static size_t token_bytes(const struct vocab_info *info)
{
    return arena_size((size_t)info->text_bytes) + arena_size(((size_t)info->n_token + 1) * 4) +
           arena_size(info->n_token);
}

/* Returns the number of added tokens that a vocabulary can have. */
static uint32_t most_added(const struct vocab_info *info)
{
    return info->n_added + N_REPAIRED;
}

static size_t table_bytes(const struct vocab_info *info, uint32_t n_merge)
{
    size_t n =
        pairs_bytes(n_merge) + arena_size(seam_bytes(info)) + 2 * added_bytes(most_added(info));

    if (info->model != VOCAB_BPE_BYTES)
        n += char_ids_bytes(info->n_char);
    if (info->ignore_merges)
        n += token_hash_bytes(info->n_token);
    return n;
}

/* Returns the size of struct build's arena. */
static size_t temporary_bytes(const struct vocab_info *info)
{
    size_t n = token_hash_bytes(info->n_token);

    if (info->model == VOCAB_SCORES)
        n += arena_size(info->n_token * sizeof(float));
    return n;
}

uint32_t tokenizer_most_merges(const struct vocab_info *info)
{
    return info->model == VOCAB_SCORES ? scores_max_pairs(info) : info->n_merge;
}

uint64_t tokenizer_bytes_bound(const struct vocab_info *info)
{
    const uint64_t page = 65536; /* arena_map rounds both mappings up */

    return token_bytes(info) + table_bytes(info, tokenizer_most_merges(info)) + sizeof(struct tokenizer) +
           SPLIT_BYTES + 2 * page;
}

uint64_t tokenizer_build_bytes(const struct vocab_info *info)
{
    const uint64_t page = 65536;

    if (info->model == VOCAB_SCORES)
        return temporary_bytes(info) + scores_build_bytes(info) + page;
    return temporary_bytes(info) + pair_list_bytes(info->n_merge) + page;
}

uint64_t tokenizer_bytes(const struct tokenizer *t)
{
    return t->tokens.size + t->tables.size + sizeof *t + (t->split != NULL ? SPLIT_BYTES : 0);
}

int tokenizer_map_tokens(struct tokenizer *t, struct err *e)
{
    size_t n = t->info.n_token;

    if (arena_map(&t->tokens, "tokenizer", token_bytes(&t->info), true, e) != 0)
        return -1;
    t->text = arena_take(&t->tokens, (size_t)t->info.text_bytes, e);
    t->start = arena_take(&t->tokens, (n + 1) * 4, e);
    t->flag = arena_take(&t->tokens, n, e);
    return t->text == NULL || t->start == NULL || t->flag == NULL ? -1 : 0;
}

int tokenizer_map_tables(struct tokenizer *t, uint32_t n_merge, struct err *e)
{
    const struct vocab_info *info = &t->info;

    if (arena_map(&t->tables, "tokenizer", table_bytes(info, n_merge), true, e) != 0 ||
        pairs_start(&t->pairs, &t->tables, info->n_token + 1, n_merge, e) != 0)
        return -1;
    t->seams = arena_take(&t->tables, seam_bytes(info), e);
    if (t->seams == NULL || added_start(&t->all, &t->tables, most_added(info), e) != 0 ||
        added_start(&t->plain, &t->tables, most_added(info), e) != 0)
        return -1;
    if (info->model != VOCAB_BPE_BYTES &&
        char_ids_start(&t->chars, &t->tables, info->n_char, e) != 0)
        return -1;
    if (info->ignore_merges && token_hash_start(&t->hash, &t->tables, info->n_token, e) != 0)
        return -1;
    return info->pre[0] != '\0' ? split_new(&t->split, info->pre, e) : 0;
}

static int start_tokens(struct build *b, struct err *e)
{
    const struct vocab_info *info = &b->t->info;

    if (tokenizer_map_tokens(b->t, e) != 0 ||
        arena_map(&b->tmp, "tokenizer", temporary_bytes(info), true, e) != 0)
        return -1;
    if (info->model == VOCAB_SCORES) {
        b->score = arena_take(&b->tmp, info->n_token * sizeof *b->score, e);
        if (b->score == NULL)
            return -1;
    }
    return 0;
}

/*
 * Byte-level texts use an alphabet of 256 letters.  Printable bytes represent themselves; the
 * other 68, in ascending order, are U+0100 to U+0143.  Returns the byte of a letter, or -1.
 */
static int letter_byte(uint32_t cp)
{
    if ((cp >= 0x21 && cp <= 0x7e) || (cp >= 0xa1 && cp <= 0xac) || (cp >= 0xae && cp <= 0xff))
        return (int)cp;
    if (cp >= 0x100 && cp <= 0x120)
        return (int)cp - 0x100;
    if (cp >= 0x121 && cp <= 0x142)
        return (int)cp - 0x121 + 0x7f;
    return cp == 0x143 ? 0xad : -1;
}

/* Convert letters to bytes.  A text with other characters is copied.  out has n bytes. */
static size_t letters_to_bytes(const char *text, size_t n, char *out)
{
    size_t used = 0;

    for (size_t i = 0; i < n; used++) {
        uint32_t cp;
        int byte;

        i += utf8_decode(text + i, n - i, &cp);
        byte = letter_byte(cp);
        if (byte < 0) {
            memcpy(out, text, n);
            return n;
        }
        out[used] = (char)byte;
    }
    return used;
}

/* Returns true for tokens of images and sound, which a text chat never samples. */
static bool is_media(const char *text, size_t len)
{
    static const char *const names[] = {
        "<|image>",       "<image|>",       "<|image|>",          "<|audio>",
        "<audio|>",       "<|audio|>",      "<|video|>",          "<start_of_image>",
        "<end_of_image>", "<|image_pad|>",  "<image_soft_token>", "<|vision_start|>",
        "<|vision_end|>", "<|vision_pad|>", "<|video_pad|>",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0)
            return true;
    return false;
}

/* Returns true for a token that begins or ends a text. */
static bool is_border(const struct build *b, uint32_t id)
{
    const struct vocab_info *info = &b->t->info;

    for (uint32_t i = 0; i < b->from->generation.n_stop; i++)
        if (b->from->generation.stop[i] == id)
            return true;
    return (int64_t)id == info->bos || (int64_t)id == info->eos;
}

/*
 * Returns true if the file gives a mark another type than control.  A user token such as <think>
 * is right: published files have it, and messages may contain it.
 */
static bool is_mark(const struct build *b, uint32_t id, const char *text, size_t len,
                    enum token_kind kind)
{
    struct span s = { text, len };

    if (b->n_repaired == N_REPAIRED || kind == TOKEN_CONTROL || kind == TOKEN_BYTE || len == 0 ||
        (int64_t)id == b->t->info.unk || mark_at(s).n != len)
        return false;
    if (kind == TOKEN_USER && text[0] == '<' && mark_is_thinking(s))
        return false;
    return is_border(b, id) || mark_words_have(&b->marks, text, len);
}

static int on_token(void *ctx, uint32_t id, const char *text, size_t len, float score,
                    enum token_kind kind, bool lstrip, bool rstrip, struct err *e)
{
    struct build *b = ctx;
    struct tokenizer *t = b->t;
    bool is_letters = t->info.model == VOCAB_BPE_BYTES && kind == TOKEN_NORMAL;
    unsigned repaired = 0;

    if (id == 0 && start_tokens(b, e) != 0)
        return -1;
    if (id % LOOK_EVERY == 0 && catalogue_go_on(b->from, e) != 0)
        return -1;
    /* The counts come from an earlier pass over the same file. */
    if (id != b->n_token || id >= t->info.n_token || len > t->info.text_bytes - b->used)
        return err_set(e, ERR_IO, "the vocabulary changed while it was read");
    if (is_mark(b, id, text, len, kind)) {
        kind = TOKEN_CONTROL;
        repaired = FLAG_REPAIRED;
        b->n_repaired++;
    }
    is_letters = is_letters && repaired == 0;
    t->start[id] = (uint32_t)b->used;
    if (is_letters)
        b->used += letters_to_bytes(text, len, t->text + b->used);
    else if (len > 0) {
        memcpy(t->text + b->used, text, len);
        b->used += len;
    }
    t->start[id + 1] = (uint32_t)b->used;
    t->flag[id] =
        (uint8_t)((unsigned)kind | repaired | (lstrip ? FLAG_LSTRIP : 0u) | (rstrip ? FLAG_RSTRIP : 0u) |
                  (is_media(text, len) && kind != TOKEN_NORMAL ? FLAG_MEDIA : 0u));
    if (b->score != NULL)
        b->score[id] = score;
    b->n_token++;
    return 0;
}

void tokenizer_count_bytes(struct tokenizer *t)
{
    t->lacks_bytes = false;
    for (int c = 0; c < 256; c++)
        t->lacks_bytes |= t->byte_id[c] == NO_ID;
}

#define MOST_BYTES 250 /* of 256: a few files lack some of them */

/* Give tokens like <0x98> the type of a byte if there is one for nearly every byte.  Some files
 * give them another type, and their text would be shown instead of the byte. */
static void repair_bytes(struct tokenizer *t)
{
    bool has[256] = { false };
    int n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t id = 0; id < t->info.n_token && (pass == 0 || n >= MOST_BYTES); id++) {
            size_t len;
            const char *text = token_text(t, id, &len);
            int byte = vocab_byte(text, len);

            if (byte < 0)
                continue;
            if (pass == 0) {
                n += !has[byte];
                has[byte] = true;
            } else {
                t->flag[id] = (uint8_t)((t->flag[id] & ~FLAG_KIND) | TOKEN_BYTE);
            }
        }
}

/* Find the token of each byte. */
static void find_bytes(struct tokenizer *t)
{
    bool is_bytes = t->info.model == VOCAB_BPE_BYTES;

    for (int c = 0; c < 256; c++)
        t->byte_id[c] = NO_ID;
    for (uint32_t id = 0; id < t->info.n_token; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);
        enum token_kind kind = token_kind(t, id);
        int byte = -1;

        if (is_bytes && kind == TOKEN_NORMAL && len == 1)
            byte = (unsigned char)text[0];
        else if (!is_bytes && kind == TOKEN_BYTE && t->info.byte_fallback)
            byte = vocab_byte(text, len);
        if (byte >= 0 && t->byte_id[byte] == NO_ID)
            t->byte_id[byte] = id;
    }
    tokenizer_count_bytes(t);
}

static int make_ready(struct build *b, struct err *e)
{
    if (b->is_ready)
        return 0;
    if (b->n_token != b->t->info.n_token)
        return err_set(e, ERR_FORMAT, "the vocabulary ends after %u of %u tokens", b->n_token,
                       b->t->info.n_token);
    repair_bytes(b->t);
    find_bytes(b->t);
    if (b->t->lacks_bytes && b->t->info.byte_fallback && b->t->info.model == VOCAB_BPE_BYTES)
        return err_set(e, ERR_UNSUPPORTED,
                       "a byte level before a vocabulary of characters is not supported"
                       VOCAB_ADVICE);
    if (token_hash_start(&b->hash, &b->tmp, b->t->info.n_token, e) != 0)
        return -1;
    token_hash_fill(&b->hash, b->t, true);
    b->is_ready = true;
    return 0;
}

static const char *word_of(const struct merge *m, int i, size_t *len)
{
    *len = i == LEFT ? m->n_left : i == RIGHT ? m->n_right : m->n_left + m->n_right;
    return i == RIGHT ? m->text + m->n_left : m->text;
}

/* Add the oldest of the last merges to the list. */
static int finish_merge(struct build *b, struct err *e)
{
    const struct tokenizer *t = b->t;
    const struct merge *m = &b->last[b->list.n % N_LAST];
    uint32_t id[N_WORD];
    struct pair pair;
    size_t len;

    for (int i = 0; i < N_WORD; i++) {
        const char *text = word_of(m, i, &len);

        id[i] = token_hash_finish(&b->hash, t, text, len, m->hash[i]);
        if (id[i] == NO_ID)
            return err_set(e, ERR_FORMAT, "merge %u needs \"%.*s\", which is not a token",
                           b->list.n, (int)(len < 60 ? len : 60), text);
    }
    pair = (struct pair){ id[LEFT], id[RIGHT], id[MERGED] };
    /* Text must not merge into other kinds of tokens.  Such a merge keeps its rank, but as a
     * pair that never occurs. */
    if (!is_text_token(t, pair.left) || !is_text_token(t, pair.right) ||
        !is_text_token(t, pair.merged))
        pair = (struct pair){ t->info.n_token, t->info.n_token, 0 };
    return pair_list_add(&b->list, pair, e);
}

/* Fetch what the merges before this one need next, in the order in which they need it. */
static void fetch_merges(const struct build *b)
{
    if (b->n_merge >= TEXT_AGE)
        for (int i = 0; i < N_WORD; i++)
            token_hash_fetch_text(&b->hash, b->t,
                                  b->last[(b->n_merge - TEXT_AGE) % N_LAST].hash[i]);
    if (b->n_merge >= PLACE_AGE)
        for (int i = 0; i < N_WORD; i++)
            token_hash_fetch_place(&b->hash, b->t,
                                   b->last[(b->n_merge - PLACE_AGE) % N_LAST].hash[i]);
}

static int on_merge(void *ctx, const char *left, size_t n_left, const char *right,
                    size_t n_right, struct err *e)
{
    struct build *b = ctx;
    struct merge *m = &b->last[b->n_merge % N_LAST];

    if (make_ready(b, e) != 0 ||
        (b->n_merge % LOOK_EVERY == 0 && catalogue_go_on(b->from, e) != 0))
        return -1;
    if (n_left > VOCAB_MAX_TEXT || n_right > VOCAB_MAX_TEXT)
        return err_set(e, ERR_FORMAT,
                       "merge %u is too long: it joins texts of %zu and %zu bytes", b->n_merge,
                       n_left, n_right);
    if (b->n_merge >= N_LAST && finish_merge(b, e) != 0)
        return -1;
    if (b->t->info.model == VOCAB_BPE_BYTES) {
        m->n_left = letters_to_bytes(left, n_left, m->text);
        m->n_right = letters_to_bytes(right, n_right, m->text + m->n_left);
    } else {
        m->n_left = n_left;
        m->n_right = n_right;
        memcpy(m->text, left, n_left);
        memcpy(m->text + n_left, right, n_right);
    }
    for (int i = 0; i < N_WORD; i++) {
        size_t len;
        const char *text = word_of(m, i, &len);

        m->hash[i] = token_hash_begin(&b->hash, text, len);
    }
    fetch_merges(b);
    b->n_merge++;
    return 0;
}

/* Add the two characters that a merge joins to the set of seams. */
static void add_seam(struct tokenizer *t, const struct pair *pair)
{
    size_t nl, nr, last;
    const char *left = token_text(t, pair->left, &nl);
    const char *right = token_text(t, pair->right, &nr);
    uint32_t before, after;

    if (t->info.model == VOCAB_BPE_BYTES) {
        seam_set(t->seams, seam_of_bytes((unsigned char)left[nl - 1], (unsigned char)right[0]));
        return;
    }
    last = utf8_start(left, 0, nl - 1);
    utf8_decode(left + last, nl - last, &before);
    utf8_decode(right, nr, &after);
    /* A merge of byte tokens may join any characters, so it disables all cuts. */
    if (before >= UTF8_SHORT || after >= UTF8_SHORT ||
        token_kind(t, pair->left) == TOKEN_BYTE || token_kind(t, pair->right) == TOKEN_BYTE)
        memset(t->seams, 0xff, seam_bytes(&t->info));
    else
        seam_set(t->seams, seam_of_chars(before, after));
}

static const struct pair *pair_at(const struct build *b, uint32_t i)
{
    return &b->list.pairs[i / PAIR_CHUNK][i % PAIR_CHUNK];
}

/* Prefetch what pairs_add() and add_seam() need: the ends of texts, and before that their
 * places.  Both functions wait for memory otherwise. */
static void fetch_pairs(const struct build *b, uint32_t i)
{
    enum { TEXTS_AHEAD = 8, PLACES_AHEAD = 16 };
    const struct tokenizer *t = b->t;
    const struct pair *pair;

    if (i + PLACES_AHEAD < b->list.n) {
        pair = pair_at(b, i + PLACES_AHEAD);
        pairs_fetch(&t->pairs, pair);
        __builtin_prefetch(&t->start[pair->left]);
        __builtin_prefetch(&t->start[pair->right]);
    }
    if (i + TEXTS_AHEAD < b->list.n) {
        pair = pair_at(b, i + TEXTS_AHEAD);
        __builtin_prefetch(t->text + t->start[pair->left]);
        __builtin_prefetch(t->text + t->start[pair->right]);
    }
}

static void fill_pairs(struct build *b)
{
    struct tokenizer *t = b->t;

    for (uint32_t i = 0; i < b->list.n; i++) {
        const struct pair *pair = pair_at(b, i);

        fetch_pairs(b, i);
        pairs_add(&t->pairs, i, pair);
        if (pair->left < t->info.n_token)
            add_seam(t, pair);
    }
}

static void fill_added(struct tokenizer *t)
{
    for (uint32_t id = 0; id < t->info.n_token; id++) {
        enum token_kind kind = token_kind(t, id);
        size_t len;

        token_text(t, id, &len);
        if (kind != TOKEN_CONTROL && kind != TOKEN_USER && kind != TOKEN_UNKNOWN)
            t->longest = len > t->longest ? (uint32_t)len : t->longest;
        else if (len > 0) {
            added_put(&t->all, id);
            if (kind == TOKEN_USER)
                added_put(&t->plain, id);
        }
    }
    added_sort(&t->all, t);
    added_sort(&t->plain, t);
    for (uint32_t i = 0; i < t->plain.n; i++) {
        size_t len;

        token_text(t, t->plain.id[i], &len);
        t->longest = len > t->longest ? (uint32_t)len : t->longest;
    }
}

void tokenizer_name_repaired(struct tokenizer *t)
{
    enum { N_NAMED = 6 };
    char *to = t->info.notice;
    size_t room = sizeof t->info.notice, used = strlen(to);
    uint32_t n = 0, rest;
    int len;

    for (uint32_t id = 0; id < t->info.n_token; id++) {
        if ((t->flag[id] & FLAG_REPAIRED) == 0 || n++ >= N_NAMED)
            continue;
        len = snprintf(to + used, room - used, "%s%.*s",
                       n > 1       ? ", "
                       : used > 0  ? " The vocabulary gives "
                                   : "The vocabulary gives ",
                       (int)(t->start[id + 1] - t->start[id]), t->text + t->start[id]);
        used += (size_t)len < room - used ? (size_t)len : room - used - 1;
    }
    rest = n > N_NAMED ? n - N_NAMED : 0;
    if (rest > 0) {
        len = snprintf(to + used, room - used, " and %u more", rest);
        used += (size_t)len < room - used ? (size_t)len : room - used - 1;
    }
    if (n > 0)
        snprintf(to + used, room - used,
                 " a wrong type. They are marks of the chat format and are used as control "
                 "tokens.");
}

static int finish(struct build *b, struct err *e)
{
    struct tokenizer *t = b->t;

    if (make_ready(b, e) != 0)
        return -1;
    while (b->list.n < b->n_merge)
        if (finish_merge(b, e) != 0)
            return -1;
    if (t->info.model == VOCAB_SCORES &&
        scores_to_pairs(&b->list, t, &b->hash, b->score, b->from, e) != 0)
        return -1;
    if (catalogue_go_on(b->from, e) != 0 || tokenizer_map_tables(t, b->list.n, e) != 0)
        return -1;
    fill_pairs(b);
    fill_added(t);
    if (t->info.model != VOCAB_BPE_BYTES)
        char_ids_fill(&t->chars, t);
    if (t->info.ignore_merges)
        token_hash_fill(&t->hash, t, false);
    tokenizer_name_repaired(t);
    pair_list_free(&b->list);
    arena_unmap(&b->tmp);
    return 0;
}

int tokenizer_open(struct tokenizer **out, const struct catalogue *c, struct err *e)
{
    struct build b = { .t = calloc(1, sizeof *b.t), .from = c };
    struct vocab_sink sink = { .ctx = &b, .token = on_token, .merge = on_merge };

    *out = NULL;
    if (b.t == NULL)
        return err_memory(e, "a tokenizer");
    mark_words_of(c, &b.marks);
    if (vocab_read(c, &b.t->info, &sink, e) != 0 ||
        (finish(&b, e) != 0 && err_at(e, NULL, ERR_NO_OFFSET, "tokenizer") != 0)) {
        pair_list_free(&b.list);
        arena_unmap(&b.tmp);
        tokenizer_close(b.t);
        return err_at(e, c->path, ERR_NO_OFFSET, NULL);
    }
    *out = b.t;
    return 0;
}

void tokenizer_close(struct tokenizer *t)
{
    if (t == NULL)
        return;
    split_free(t->split);
    arena_unmap(&t->tokens);
    arena_unmap(&t->tables);
    free(t);
}

const struct vocab_info *tokenizer_info(const struct tokenizer *t)
{
    return &t->info;
}

int64_t tokenizer_find(const struct tokenizer *t, const char *text, size_t len)
{
    int64_t id = added_exact(&t->all, t, text, len);

    for (uint32_t i = 0; id < 0 && i < t->info.n_token; i++) {
        size_t n;
        const char *own = token_text(t, i, &n);

        if (n == len && memcmp(own, text, len) == 0)
            id = i;
    }
    return id;
}

enum token_kind tokenizer_kind(const struct tokenizer *t, uint32_t id)
{
    return id < t->info.n_token ? token_kind(t, id) : TOKEN_UNUSED;
}

bool tokenizer_is_unusable(const struct tokenizer *t, uint32_t id)
{
    size_t len;

    if (id >= t->info.n_token)
        return true;
    token_text(t, id, &len);
    return len == 0 || token_kind(t, id) == TOKEN_UNUSED || (t->flag[id] & FLAG_MEDIA) != 0;
}

void tokenizer_strips(const struct tokenizer *t, uint32_t id, bool *left, bool *right)
{
    uint8_t flag = id < t->info.n_token ? t->flag[id] : 0;

    *left = (flag & FLAG_LSTRIP) != 0;
    *right = (flag & FLAG_RSTRIP) != 0;
}

uint64_t tokenizer_least_ids(const struct tokenizer *t, uint64_t len)
{
    /* The unknown token is a character of at most four bytes. */
    uint64_t longest = t->lacks_bytes && t->longest < 4 ? 4 : t->longest;
    /* Normalised text may have a third of the bytes. */
    uint64_t per_id = longest * (t->info.nfc ? 3 : 1);

    if (t->lacks_bytes && t->info.fuse_unk) /* it is a run of any length */
        return 0;
    for (uint32_t i = 0; i < t->all.n; i++)
        if ((t->flag[t->all.id[i]] & (FLAG_LSTRIP | FLAG_RSTRIP)) != 0)
            return 0;
    return per_id > 0 ? len / per_id : 0;
}
