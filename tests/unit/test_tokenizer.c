/* Small vocabularies: rules that the reference data does not reach, and broken files. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/text/split.h"
#include "engine/text/tokenizer_internal.h"
#include "tests/lib/tiny_vocab.h"

#define F (TINY_FIRST)

static void expect_ids(const struct tokenizer *t, const char *text, size_t len, bool special,
                       bool is_start, const uint32_t *want, size_t n)
{
    struct ids ids = { 0 };
    struct err e = ERR_INIT;

    assert_int_equal(tokenizer_encode(t, text, len, special, is_start, &ids, &e), 0);
    assert_int_equal(ids.n, n);
    if (n > 0)
        assert_memory_equal(ids.id, want, n * sizeof *want);
    ids_free(&ids);
}

#define EXPECT(t, text, ...)                                                                   \
    do {                                                                                       \
        const uint32_t want_[] = { __VA_ARGS__ };                                              \
        expect_ids(t, text, sizeof(text) - 1, false, true, want_,                              \
                   sizeof want_ / sizeof want_[0]);                                            \
    } while (0)

static struct tokenizer *open_tiny(const struct tiny *tiny)
{
    struct catalogue *c = tiny_open(tiny);
    struct tokenizer *t = NULL;
    struct err e = ERR_INIT;

    if (tokenizer_open(&t, c, &e) != 0)
        print_error("%s: %s\n", e.field, e.what);
    tiny_close(c);
    assert_non_null(t);
    assert_true(tokenizer_bytes(t) <= tokenizer_bytes_bound(tokenizer_info(t)));
    return t;
}

/* ---- characters ---- */

static void a_character_without_a_token_becomes_its_bytes(void **state)
{
    struct tokenizer *t = open_tiny(
        &(struct tiny){ .texts = "\"a\",\"b\",\"ab\",\"\u2581\"", .merges = "\"a b\"" });

    (void)state;
    EXPECT(t, "ab b", F + 2, F + 3, F + 1);
    EXPECT(t, "a\xc3\xa9", F, 0xc3, 0xa9);
    EXPECT(t, "a\0b", F, 0, F + 1);
    expect_ids(t, "", 0, false, true, NULL, 0);
    tokenizer_close(t);
}

static void spaces_become_bytes_if_their_block_is_not_a_token(void **state)
{
    struct tokenizer *t = open_tiny(&(struct tiny){ .texts = "\"a\"" });

    (void)state;
    EXPECT(t, "a ", F, 0xe2, 0x96, 0x81);
    tokenizer_close(t);
}

static void each_broken_sequence_becomes_one_replacement_character(void **state)
{
    struct tokenizer *t = open_tiny(&(struct tiny){ .texts = "\"a\",\"\ufffd\"" });

    (void)state;
    EXPECT(t, "a\xff\x61", F, F + 1, F);
    EXPECT(t, "\xe2\x96", F + 1);                   /* a sequence that is cut off: one */
    EXPECT(t, "\xe2\x96\x61", F + 1, F);            /* a sequence that is broken off: one */
    EXPECT(t, "\xed\xa0\x80", F + 1, F + 1, F + 1); /* a surrogate is not a character */
    EXPECT(t, "\xf4\x90\x80\x80", F + 1, F + 1, F + 1, F + 1);
    EXPECT(t, "\xc0\xaf", F + 1, F + 1);
    tokenizer_close(t);
}

static void merges_never_cross_a_cut_that_none_of_them_joins(void **state)
{
    /* No merge joins b and c, but one joins a and b, so "ab" "c" are found in any context. */
    struct tokenizer *t =
        open_tiny(&(struct tiny){ .texts = "\"a\",\"b\",\"c\",\"ab\",\"ca\",\"abab\"",
                                  .merges = "\"c a\",\"a b\",\"ab ab\"" });
    static const uint32_t want[] = { F + 3, F + 4, F + 1 };
    char text[4000];
    struct ids ids = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    EXPECT(t, "abcab", F + 3, F + 4, F + 1);
    EXPECT(t, "ababab", F + 5, F + 3);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "abcab"[i % 5];
    assert_int_equal(tokenizer_encode(t, text, sizeof text, false, true, &ids, &e), 0);
    /* abcab abcab ...: ab|ca|b ab|ca|b ... with "b" "ab" not merging */
    assert_int_equal(ids.n, sizeof text / 5 * 3);
    for (size_t i = 0; i < ids.n; i++)
        assert_int_equal(ids.id[i], want[i % 3]);
    ids_free(&ids);
    tokenizer_close(t);
}

#define METASPACE(more) "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\"" more "}"
#define SPACE_TEXTS     "\"a\",\"\u2581\",\"\u2581a\",\"\u2581\u2581\""
#define SPACE_MERGES    "\"\u2581 \u2581\",\"\u2581 a\""

static void a_prepended_space_comes_before_every_segment(void **state)
{
    struct tokenizer *t = open_tiny(&(struct tiny){
        .texts = SPACE_TEXTS,
        .merges = SPACE_MERGES,
        .added = "{\"id\":260,\"content\":\"<x>\",\"special\":true}",
        .normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
                      "\"prepend\":\"\u2581\"},{\"type\":\"Replace\",\"pattern\":{\"String\":"
                      "\" \"},\"content\":\"\u2581\"}]}" });

    (void)state;
    EXPECT(t, "a", F + 2);
    EXPECT(t, " a", F + 3, F);
    expect_ids(t, "a<x>a<x>", 8, true, true, (const uint32_t[]){ F + 2, 260, F + 2, 260 }, 4);
    expect_ids(t, "a", 1, false, false, (const uint32_t[]){ F + 2 }, 1);
    tokenizer_close(t);
}

static void metaspace_adds_a_missing_space(void **state)
{
    struct tokenizer *t = open_tiny(&(struct tiny){
        .texts = SPACE_TEXTS,
        .merges = SPACE_MERGES,
        .normalizer = "null",
        .pre_tokenizer = METASPACE(",\"prepend_scheme\":\"always\",\"split\":false") });

    (void)state;
    EXPECT(t, "a", F + 2);
    EXPECT(t, " a", F + 2);
    EXPECT(t, "  a", F + 3, F);
    tokenizer_close(t);

    t = open_tiny(&(struct tiny){ .texts = SPACE_TEXTS,
                                  .merges = SPACE_MERGES,
                                  .normalizer = "null",
                                  .pre_tokenizer = METASPACE("") });
    EXPECT(t, "  a", F + 1, F + 2); /* split: each block begins a run of its own */
    tokenizer_close(t);

    t = open_tiny(&(struct tiny){
        .texts = SPACE_TEXTS,
        .merges = SPACE_MERGES,
        .normalizer = "null",
        .pre_tokenizer = METASPACE(",\"prepend_scheme\":\"first\",\"split\":false") });
    EXPECT(t, "a", F + 2);
    expect_ids(t, "a", 1, false, false, (const uint32_t[]){ F }, 1);
    tokenizer_close(t);

    t = open_tiny(&(struct tiny){
        .texts = SPACE_TEXTS,
        .merges = SPACE_MERGES,
        .normalizer = "null",
        .pre_tokenizer = METASPACE(",\"prepend_scheme\":\"never\",\"split\":false") });
    EXPECT(t, "a", F);
    tokenizer_close(t);
}

/* ---- added tokens ---- */

static void added_tokens_match_leftmost_then_longest(void **state)
{
    struct tokenizer *t = open_tiny(
        &(struct tiny){ .texts = "\"a\"",
                        .added = "{\"id\":257,\"content\":\"<a>\",\"special\":true},"
                                 "{\"id\":258,\"content\":\"<a><b>\",\"special\":true},"
                                 "{\"id\":259,\"content\":\"b>\",\"special\":false},"
                                 "{\"id\":260,\"content\":\"<|x|>\",\"special\":false}" });

    (void)state;
    expect_ids(t, "<a><b>", 6, true, true, (const uint32_t[]){ 258 }, 1);
    expect_ids(t, "<a><c>", 6, true, true, (const uint32_t[]){ 257, '<', 'c', '>' }, 4);
    /* Control tokens stay text unless they are requested; user tokens always match. */
    EXPECT(t, "<a><b>", '<', F, '>', '<', 259);
    /* A token with the form of a control token is one, even if the file says otherwise. */
    EXPECT(t, "<|x|>", '<', '|', 'x', '|', '>');
    assert_int_equal(tokenizer_kind(t, 260), TOKEN_CONTROL);
    assert_int_equal(tokenizer_kind(t, 259), TOKEN_USER);
    tokenizer_close(t);
}

static void strips_remove_white_space_beside_a_token(void **state)
{
    struct tokenizer *t = open_tiny(&(struct tiny){
        .texts = "\"a\"",
        .added = "{\"id\":257,\"content\":\"<l>\",\"special\":true,\"lstrip\":true},"
                 "{\"id\":258,\"content\":\"<r>\",\"special\":true,\"rstrip\":true}" });
    bool left, right;

    (void)state;
    expect_ids(t, "a \n\xe3\x80\x80<l>", 9, true, true, (const uint32_t[]){ F, 257 }, 2);
    expect_ids(t, "<r> \xc2\x85 a", 8, true, true, (const uint32_t[]){ 258, F }, 2);
    tokenizer_strips(t, 258, &left, &right);
    assert_true(!left && right);
    assert_int_equal(tokenizer_least_ids(t, 1000), 0);
    tokenizer_close(t);
}

/* ---- bytes ---- */

static void a_whole_piece_may_be_a_token(void **state)
{
    struct tiny tiny = { .byte_level = true,
                         .texts = "\"ab\",\"abc\",\"bc\"",
                         .merges = "\"b c\",\"a b\"" };
    struct tokenizer *t = open_tiny(&tiny);

    (void)state;
    EXPECT(t, "abc", 'a', F + 2);
    tokenizer_close(t);
    tiny.model = "\"ignore_merges\":true";
    t = open_tiny(&tiny);
    EXPECT(t, "abc", F + 1);
    EXPECT(t, "abcb", 'a', F + 2, 'b');
    tokenizer_close(t);
}

static void words_and_numbers_are_cut_before_they_merge(void **state)
{
    struct tokenizer *t = open_tiny(&(struct tiny){
        .byte_level = true, .texts = "\"\u0120a\",\"a1\"", .merges = "\"\u0120 a\",\"a 1\"" });

    (void)state;
    EXPECT(t, "a a1", 'a', F, '1');
    tokenizer_close(t);
}

static void text_is_normalized_first(void **state)
{
    struct tokenizer *t =
        open_tiny(&(struct tiny){ .byte_level = true, .normalizer = "{\"type\":\"NFC\"}" });

    (void)state;
    EXPECT(t, "e\xcc\x81", 0xc3, 0xa9);
    EXPECT(t, "e\xcc\x81\0e", 0xc3, 0xa9, 0, 'e');
    tokenizer_close(t);
}

static void an_object_may_name_its_members_in_any_order(void **state)
{
    static const char text[] =
        "{\"model\":{\"merges\":[[\"a\",\"b\"]],\"vocab\":%s,\"byte_fallback\":true},"
        "\"pre_tokenizer\":null,\"normalizer\":{\"content\":\"\u2581\",\"pattern\":"
        "{\"String\":\" \"},\"type\":\"Replace\"},"
        "\"added_tokens\":[{\"special\":true,\"content\":\"<x>\",\"id\":259}]}";
    char vocab[8192] = "{\"a\":256,\"ab\":258,\"b\":257", all[9000];
    struct tiny none = { 0 };
    struct catalogue *c;
    struct tokenizer *t;
    struct err e = ERR_INIT;
    size_t n = strlen(vocab);

    (void)state;
    for (unsigned i = 0; i < 256; i++)
        n +=
            (size_t)snprintf(vocab + n, sizeof vocab - n, ",\"<0x%02X>\":%u", 255 - i, 255 - i);
    snprintf(vocab + n, sizeof vocab - n, "}");
    n = (size_t)snprintf(all, sizeof all, text, vocab);
    c = tiny_open_text(all, n, &none);
    assert_int_equal(tokenizer_open(&t, c, &e), 0);
    EXPECT(t, "ab<x>", 258, '<', 'x', '>');
    assert_int_equal(tokenizer_find(t, "<x>", 3), 259);
    tokenizer_close(t);
    tiny_close(c);
}

/* ---- text in pieces ---- */

#define LONG_TEXT ((size_t)300000)

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Join parts in random order to LONG_TEXT bytes; the caller frees the text. */
static char *mix(const char *const *parts, uint32_t seed)
{
    char *text = malloc(LONG_TEXT + 64);
    size_t n_part = 0, n = 0;

    assert_non_null(text);
    while (parts[n_part] != NULL)
        n_part++;
    while (n < LONG_TEXT) {
        const char *part = parts[next_random(&seed) % n_part];

        memcpy(text + n, part, strlen(part));
        n += strlen(part);
    }
    return text;
}

static int encode_pieces(const struct tokenizer *t, const char *text, size_t len, bool special,
                         size_t run_max, size_t piece_max, struct ids *out, struct err *e)
{
    struct encoder *x;
    uint32_t seed = 7;
    int rc = 0;

    assert_int_equal(encoder_new(&x, t, special, run_max, e), 0);
    for (size_t at = 0; rc == 0 && at < len;) {
        size_t n = 1 + next_random(&seed) % piece_max;

        n = n < len - at ? n : len - at;
        rc = encoder_push(x, text + at, n, out, e);
        at += n;
    }
    if (rc == 0)
        rc = encoder_end(x, out, e);
    encoder_free(x);
    return rc;
}

static void expect_same(const struct tokenizer *t, const char *text, size_t len, bool special,
                        const char *what)
{
    struct ids whole = { 0 }, pieces = { 0 };
    struct err e = ERR_INIT;

    assert_int_equal(tokenizer_encode(t, text, len, special, true, &whole, &e), 0);
    assert_int_equal(encode_pieces(t, text, len, special, 0, 100000, &pieces, &e), 0);
    for (size_t i = 0; i < whole.n && i < pieces.n; i++)
        if (whole.id[i] != pieces.id[i])
            fail_msg("%s: id %zu is %u, not %u", what, i, pieces.id[i], whole.id[i]);
    assert_int_equal(whole.n, pieces.n);
    ids_free(&whole);
    ids_free(&pieces);
}

static void text_that_is_cut_inside_characters_gives_the_same_ids(void **state)
{
    static const char *const parts[] = {
        "ab",   "b ",           "  ",       "\n",  " a", "a",
        "b",    "<l>",          " <r> \t ", "<u>", "<",  "\xe2\x96\x81",
        "\xff", "\xe3\x80\x80", "\xe4\xb8", "cd",  NULL
    };
    static const char *const prefixes[] = {
        NULL, "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","
              "\"prepend_scheme\":\"always\",\"split\":false}"
    };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tokenizer *t = open_tiny(&(struct tiny){
            .texts = "\"a\",\"b\",\"\u2581\",\"ab\",\"\u2581a\",\"ba\",\"b\u2581\","
                     "\"\u2581\u2581\",\"aa\"",
            .merges = "\"b a\",\"a b\",\"\u2581 a\",\"b \u2581\",\"\u2581 \u2581\",\"a a\"",
            .added = "{\"id\":265,\"content\":\"<l>\",\"special\":true,\"lstrip\":true},"
                     "{\"id\":266,\"content\":\"<r>\",\"special\":true,\"rstrip\":true},"
                     "{\"id\":267,\"content\":\"<u>\",\"special\":false}",
            .pre_tokenizer = prefixes[i] });

        for (uint32_t seed = 1; seed <= 3; seed++) {
            char *text = mix(parts, seed);

            expect_same(t, text, LONG_TEXT, false, "plain");
            expect_same(t, text, LONG_TEXT, true, "special");
            free(text);
        }
        tokenizer_close(t);
    }
}

/* Every pair of these bytes merges, so the ids show where the text is cut. */
static struct tokenizer *open_all_pairs(void)
{
    static const char *const letters[] = { "a", "B", "1", "s", "\u0120", "\u010a",
                                           "'", ".", "/", "_", "\u0109" };
    const size_t n = sizeof letters / sizeof letters[0];
    char texts[4096], merges[4096];
    size_t n_text = 0, n_merge = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const char *comma = n_text > 0 ? "," : "";

            n_text += (size_t)snprintf(texts + n_text, sizeof texts - n_text, "%s\"%s%s\"",
                                       comma, letters[i], letters[k]);
            n_merge += (size_t)snprintf(merges + n_merge, sizeof merges - n_merge,
                                        "%s\"%s %s\"", comma, letters[i], letters[k]);
        }
    assert_true(n_text < sizeof texts && n_merge < sizeof merges);
    return open_tiny(&(struct tiny){ .byte_level = true, .texts = texts, .merges = merges });
}

static void text_in_pieces_gives_the_same_ids_with_every_pattern(void **state)
{
    static const char *const names[] = { "llama3", "qwen2",  "qwen35",      "gpt2",   "smollm",
                                         "tekken", "gpt-4o", "deepseek-v3", "default",
                                         "kimi-k2", "lines+qwen2", "deepseek-llm",
                                         "seed-coder" };
    static const char *const parts[] = { "a",       "B",
                                         "s",       "1",
                                         "11",      " ",
                                         "  ",      "\n",
                                         "\n\n",    "'",
                                         "'s",      ".",
                                         "/",       "_",
                                         "\t",      "a B",
                                         "1.",      "\r",
                                         "e\u0301", "\u4e0b",
                                         "\u3002",  "\u0915\u093c",
                                         "\u0958",  "\xc2\xa0",
                                         "\xff",    NULL };
    struct tokenizer *t = open_all_pairs();

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct err e = ERR_INIT;

        split_free(t->split);
        assert_int_equal(split_new(&t->split, names[i], &e), 0);
        for (uint32_t seed = 0; seed < 8; seed++) {
            char *text = mix(parts, seed);

            t->info.nfc = seed % 2 != 0;
            expect_same(t, text, LONG_TEXT, false, names[i]);
            free(text);
        }
    }
    tokenizer_close(t);
}

static void a_run_without_a_cut_is_bounded(void **state)
{
    struct tokenizer *t =
        open_tiny(&(struct tiny){ .texts = "\"a\",\"aa\"", .merges = "\"a a\"" });
    struct ids ids = { 0 }, few = { .max = 100 };
    struct err e = ERR_INIT;
    char *text = malloc(LONG_TEXT);

    (void)state;
    assert_non_null(text);
    memset(text, 'a', LONG_TEXT);
    assert_int_equal(encode_pieces(t, text, LONG_TEXT, false, 0, 5000, &ids, &e), 0);
    assert_int_equal(ids.n, LONG_TEXT / 2);
    text[70000] = 'b';
    ids.n = 0;
    assert_int_equal(encode_pieces(t, text, LONG_TEXT, false, 131072, 5000, &ids, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(e.what, "131072 bytes from byte 70001"));
    assert_int_equal(tokenizer_encode(t, text, 200, false, true, &few, &e), 0);
    assert_int_equal(few.n, 100);
    assert_int_equal(tokenizer_encode(t, text, 2, false, true, &few, &e), -1);
    assert_int_equal(e.code, ERR_CONTEXT);
    assert_int_equal(few.n, 100);
    few.n = 0;
    assert_int_equal(tokenizer_encode(t, text, LONG_TEXT, false, true, &few, &e), -1);
    assert_int_equal(e.code, ERR_CONTEXT);
    ids_free(&few);
    ids_free(&ids);
    free(text);
    tokenizer_close(t);
}

/* ---- decoding ---- */

static void decode_all(const struct tokenizer *t, const uint32_t *id, size_t n, bool control,
                       const char *want)
{
    struct decoder d = { .show_control = control };
    char out[8 * DECODE_MAX];
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += decoder_push(&d, t, id[i], out + len);
    len += decoder_end(&d, out + len);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(out, want, len);
}

static void text_comes_out_in_whole_characters(void **state)
{
    struct tokenizer *t = open_tiny(
        &(struct tiny){ .texts = "\"a\",\"\u2581b\"",
                        .added = "{\"id\":258,\"content\":\"<x>\",\"special\":true}" });
    struct decoder d = { 0 };
    char buf[DECODE_MAX];

    (void)state;
    assert_int_equal(decoder_push(&d, t, 0xf0, buf), 0);
    assert_int_equal(decoder_push(&d, t, 0x9f, buf), 0);
    assert_int_equal(decoder_push(&d, t, 0x98, buf), 0);
    assert_int_equal(decoder_push(&d, t, 0x80, buf), 4);
    assert_memory_equal(buf, "\xf0\x9f\x98\x80", 4);
    decode_all(t, (const uint32_t[]){ F, F + 1, 258, F }, 4, false, "a ba");
    decode_all(t, (const uint32_t[]){ F, F + 1, 258, F }, 4, true, "a b<x>a");
    decode_all(t, (const uint32_t[]){ 0xe2, F }, 2, false,
               "\xef\xbf\xbd"
               "a");
    decode_all(t, (const uint32_t[]){ 0xe2, 0x96 }, 2, false, "\xef\xbf\xbd");
    decode_all(t, (const uint32_t[]){ 0x80, 0x80 }, 2, false, "\xef\xbf\xbd\xef\xbf\xbd");
    decode_all(t, (const uint32_t[]){ 100000, F }, 2, false, "a"); /* this id does not exist */
    assert_true(tokenizer_is_unusable(t, 259));
    assert_false(tokenizer_is_unusable(t, 258));
    tokenizer_close(t);
}

static void pieces_report_their_length_if_the_buffer_is_too_small(void **state)
{
    struct tokenizer *t = open_tiny(&(struct tiny){ .texts = "\"\u2581hello\"" });
    char buf[4] = "xxx";

    (void)state;
    assert_int_equal(tokenizer_piece(t, F, false, buf, 3), 6);
    assert_memory_equal(buf, " he", 4 - 1);
    assert_int_equal(tokenizer_piece(t, F, false, NULL, 0), 6);
    tokenizer_close(t);
}

/* ---- broken files ---- */

struct broken {
    const char *name;
    struct tiny tiny;
    const char *text; /* the whole file, in place of tiny */
    const char *want; /* part of the message */
};

#define ADDED(id, text) "{\"id\":" id ",\"content\":\"" text "\",\"special\":true}"
#define LONG_64         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LONG_1024                                                                              \
    LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64    \
        LONG_64 LONG_64 LONG_64 LONG_64 LONG_64

static struct broken broken_files[] = {
    { "empty", { 0 }, "", "empty" },
    { "no object", { 0 }, "[1]", "not a JSON object" },
    { "cut off", { 0 }, "{\"model\":{\"vocab\":{\"a\":0", "not valid JSON" },
    { "no vocabulary", { 0 }, "{\"version\":\"1.0\"}", "no vocabulary" },
    { "vocabulary of another kind",
      { 0 },
      "{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}",
      "Unigram" },
    { "vocabulary is a list", { 0 }, "{\"model\":{\"vocab\":[]}}", "not an object" },
    { "an id is text", { 0 }, "{\"model\":{\"vocab\":{\"a\":\"0\"}}}", "not an integer" },
    { "an id is negative", { 0 }, "{\"model\":{\"vocab\":{\"a\":-1}}}", "not an integer" },
    { "an id is a fraction", { 0 }, "{\"model\":{\"vocab\":{\"a\":1.5}}}", "not an integer" },
    { "an id is enormous", { 0 }, "{\"model\":{\"vocab\":{\"a\":999999999}}}", "999999999" },
    { "an id overflows",
      { 0 },
      "{\"model\":{\"vocab\":{\"a\":99999999999999999999}}}",
      "not an integer" },
    { "two tokens have one id", { 0 }, "{\"model\":{\"vocab\":{\"a\":1,\"b\":1}}}", "id 1" },
    { "the model comes twice", { 0 }, "{\"model\":{},\"model\":{}}", "twice" },
    { "merges are not a list", { .model = "\"merges\":{}" }, NULL, "not an array" },
    { "a merge is a number", { .merges = "1" }, NULL, "merge 0" },
    { "a merge is one text", { .merges = "\"ab\"" }, NULL, "merge 0" },
    { "a merge has three texts",
      { .texts = "\"a\",\"aa\"", .merges = "[\"a\",\"a\",\"a\"]" },
      NULL,
      "merge" },
    { "a merge has one text",
      { .texts = "\"a\",\"aa\"", .merges = "[\"a\"]" },
      NULL,
      "merge 0" },
    { "a merge is empty", { .merges = "[\"\",\"a\"]" }, NULL, "merge 0" },
    { "a merge of text that is not a token",
      { .texts = "\"a\"", .merges = "\"a b\"" },
      NULL,
      "merge 0 needs \"b\"" },
    { "a merge into text that is not a token",
      { .texts = "\"a\",\"b\"", .merges = "\"a b\"" },
      NULL,
      "merge 0 needs \"ab\"" },
    { "a token is too long", { .texts = "\"" LONG_1024 "a\"" }, NULL, "1025" },
    { "a merge is too long",
      { .texts = "\"a\"", .merges = "\"" LONG_1024 "a b\"" },
      NULL,
      "merge 0" },
    { "an added token has no id", { .added = "{\"content\":\"<x>\"}" }, NULL, "no id" },
    { "an added token has no text", { .added = "{\"id\":256}" }, NULL, "no content" },
    { "an added token is empty", { .added = ADDED("256", "") }, NULL, "0 bytes" },
    { "an added token leaves a gap",
      { .added = ADDED("300", "<x>") },
      NULL,
      "give it the id 256" },
    { "an added token is another one",
      { .texts = "\"a\"", .added = ADDED("257", "a") },
      NULL,
      "is token 256" },
    { "an added token takes an id",
      { .texts = "\"a\"", .added = ADDED("256", "<x>") },
      NULL,
      "give it the id 257" },
    { "an added token for single words",
      { .added = "{\"id\":256,\"content\":\"x\",\"single_word\":true}" },
      NULL,
      "single words" },
    { "an unknown normalizer",
      { .normalizer = "{\"type\":\"Lowercase\"}" },
      NULL,
      "Lowercase" },
    { "an unknown pre-tokenizer",
      { .pre_tokenizer = "{\"type\":\"BertPreTokenizer\"}" },
      NULL,
      "BertPreTokenizer" },
    { "an unknown pattern",
      { .byte_level = true,
        .pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                         "\"pattern\":{\"Regex\":\"[abc]+\"},\"behavior\":\"Isolated\"},"
                         "{\"type\":\"ByteLevel\",\"use_regex\":false}]}" },
      NULL,
      "[abc]+" },
    { "spaces that stay spaces", { .normalizer = "null" }, NULL, "keeps spaces" },
    { "neither bytes nor characters",
      { .byte_level = true, .pre_tokenizer = "null" },
      NULL,
      "neither" },
    { "word suffixes", { .model = "\"end_of_word_suffix\":\"</w>\"" }, NULL, "suffixes" },
    { "a configuration that is broken",
      { .config = "{\"bos_token\":" },
      NULL,
      "not valid JSON" },
};

static void refuses(void **state)
{
    struct broken *b = *state;
    struct catalogue *c = b->text != NULL ? tiny_open_text(b->text, strlen(b->text), &b->tiny)
                                          : tiny_open(&b->tiny);
    struct tokenizer *t = NULL;
    struct vocab_info info;
    struct err e = ERR_INIT;
    char text[700];

    assert_int_equal(tokenizer_open(&t, c, &e), -1);
    assert_null(t);
    err_text(&e, text, sizeof text);
    if (strstr(text, b->want) == NULL || strstr(text, "tokenizer") == NULL)
        fail_msg("wrong message: %s", text);
    assert_null(strchr(text, '\n'));
    vocab_info(c, &info, &e); /* only the counts: any result, but no crash */
    tiny_close(c);
}

#define N_PLAIN 14

int main(void)
{
    enum { N_BROKEN = sizeof broken_files / sizeof broken_files[0] };
    struct CMUnitTest tests[N_PLAIN + N_BROKEN] = {
        cmocka_unit_test(a_character_without_a_token_becomes_its_bytes),
        cmocka_unit_test(spaces_become_bytes_if_their_block_is_not_a_token),
        cmocka_unit_test(each_broken_sequence_becomes_one_replacement_character),
        cmocka_unit_test(merges_never_cross_a_cut_that_none_of_them_joins),
        cmocka_unit_test(a_prepended_space_comes_before_every_segment),
        cmocka_unit_test(metaspace_adds_a_missing_space),
        cmocka_unit_test(added_tokens_match_leftmost_then_longest),
        cmocka_unit_test(strips_remove_white_space_beside_a_token),
        cmocka_unit_test(a_whole_piece_may_be_a_token),
        cmocka_unit_test(words_and_numbers_are_cut_before_they_merge),
        cmocka_unit_test(text_is_normalized_first),
        cmocka_unit_test(an_object_may_name_its_members_in_any_order),
        cmocka_unit_test(text_that_is_cut_inside_characters_gives_the_same_ids),
        cmocka_unit_test(text_in_pieces_gives_the_same_ids_with_every_pattern),
        cmocka_unit_test(a_run_without_a_cut_is_bounded),
        cmocka_unit_test(text_comes_out_in_whole_characters),
        cmocka_unit_test(pieces_report_their_length_if_the_buffer_is_too_small),
    };

    for (size_t i = 0; i < N_BROKEN; i++)
        tests[N_PLAIN + i] =
            (struct CMUnitTest){ broken_files[i].name, refuses, NULL, NULL, &broken_files[i] };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
