/*
 * Text to ids and back, and ids as a model may send them.
 *
 * The first byte chooses the vocabulary.  The rest is a text, and also a row of ids.  Decoding
 * the encoded text must give the text, with broken sequences replaced.  For any ids, the shown
 * text is valid UTF-8 and equals the bytes of the pieces with broken sequences replaced.
 * Thinking and answer together lose nothing but marks, labels and newlines.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/chat_format.h"
#include "tests/lib/tiny_vocab.h"

#define MAX_INPUT         4096
#define MAX_PIECE         48 /* bytes of a token, if all of them are broken */
#define CONTROL(id, text) "{\"id\":" #id ",\"content\":\"" text "\",\"special\":true}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tiny vocabularies[] = {
    { .byte_level = true,
      .texts = "\"th\",\"the\",\"\u0120t\",\"\u0120\u0120\",\"\u00e2\u0138\",\"\u00f0\u0141\"",
      .merges = "\"t h\",\"th e\",\"\u0120 t\",\"\u0120 \u0120\",\"\u00e2 \u0138\","
                "\"\u00f0 \u0141\"",
      .added = CONTROL(262, "<|im_start|>") "," CONTROL(263, "<|im_end|>") },
    { .texts = "\"a\",\"b\",\"ab\",\"\u2581\",\"\u2581a\",\"\u2581\u2581\",\"\\n\",\"\\n\\n\"",
      .merges = "\"a b\",\"\u2581 a\",\"\u2581 \u2581\",\"\\n \\n\"",
      .added = CONTROL(264, "<|channel>") "," CONTROL(265, "<channel|>") "," CONTROL(
          266, "<|turn>") "," CONTROL(267, "<turn|>") },
};
#define N_VOCABULARY (sizeof vocabularies / sizeof vocabularies[0])

static const char *const formats[] = { "chatml", "gemma4" };

static struct tokenizer *tokenizers[N_VOCABULARY];
static struct chat_choice *choices[N_VOCABULARY];

static void open_all(void)
{
    for (size_t i = 0; i < N_VOCABULARY; i++) {
        struct catalogue *c = tiny_open(&vocabularies[i]);
        const struct chat_wish wish = { .format = formats[i] };
        struct err e = ERR_INIT;

        if (tokenizer_open(&tokenizers[i], c, &e) != 0 ||
            chat_choose(&choices[i], c, tokenizers[i], &wish, &e) != 0)
            abort();
        tiny_close(c);
    }
}

/* Replace every U+2581 by a space, as decoding does. */
static size_t blocks_to_spaces(char *text, size_t n)
{
    size_t used = 0;

    for (size_t i = 0; i < n;) {
        bool is_block = n - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0;

        text[used++] = is_block ? ' ' : text[i];
        i += is_block ? 3 : 1;
    }
    return used;
}

static char *decode(const struct tokenizer *t, const uint32_t *id, size_t n, size_t *len)
{
    struct decoder d = { 0 };
    char *out = malloc(n * MAX_PIECE + 2 * DECODE_MAX);

    if (out == NULL)
        exit(1);
    *len = 0;
    for (size_t i = 0; i < n; i++) {
        size_t more = decoder_push(&d, t, id[i], out + *len);

        if (more > DECODE_MAX || !utf8_is_valid(out + *len, more))
            abort();
        *len += more;
    }
    *len += decoder_end(&d, out + *len);
    return out;
}

static void there_and_back(const struct tokenizer *t, const char *text, size_t n)
{
    struct ids ids = { 0 };
    struct err e = ERR_INIT;
    char want[3 * MAX_INPUT], *got;
    size_t n_want = utf8_repair(text, n, want), n_got;

    if (tokenizer_info(t)->model == VOCAB_BPE_CHARS)
        n_want = blocks_to_spaces(want, n_want);
    if (tokenizer_encode(t, text, n, false, true, &ids, &e) != 0)
        abort();
    got = decode(t, ids.id, ids.n, &n_got);
    if (n_got != n_want || memcmp(got, want, n_got) != 0)
        abort();
    free(got);
    ids_free(&ids);
}

static void any_ids(const struct tokenizer *t, const struct chat_format *format,
                    const uint8_t *data, size_t n)
{
    static uint32_t id[MAX_INPUT];
    static char bytes[MAX_INPUT * 16], want[3 * sizeof bytes];
    struct answer_parser p = { .format = format, .tokenizer = t };
    size_t n_bytes = 0, n_want, n_got, n_shown = 0, n_mark = 0, len;
    char *got, buf[ANSWER_TEXT_MAX];
    bool is_thinking;

    /* Bytes above 0xf0 stand for ids that are not bytes, and for some after the last id. */
    for (size_t i = 0; i < n; i++)
        id[i] = data[i] < 0xf0 ? data[i] : 256u + (data[i] & 0x0fu);
    for (size_t i = 0; i < n; i++)
        n_bytes += tokenizer_piece(t, id[i], false, bytes + n_bytes, 16);
    n_want = utf8_repair(bytes, n_bytes, want);
    got = decode(t, id, n, &n_got);
    if (n_got != n_want || memcmp(got, want, n_got) != 0)
        abort();
    for (size_t i = 0; i < n; i++) {
        len = answer_parser_push(&p, id[i], buf, &is_thinking);
        if (len > sizeof buf || !utf8_is_valid(buf, len))
            abort();
        n_shown += len;
        n_mark += tokenizer_kind(t, id[i]) == TOKEN_CONTROL;
    }
    len = answer_parser_end(&p, buf, &is_thinking);
    /* A mark inside a character leaves up to three bytes, each of which is broken. */
    if (len > sizeof buf || !utf8_is_valid(buf, len) || n_shown + len > n_got + 9 * n_mark)
        abort();
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t which;

    if (size < 1 || size > MAX_INPUT)
        return 0;
    if (tokenizers[0] == NULL)
        open_all();
    which = data[0] % N_VOCABULARY;
    there_and_back(tokenizers[which], (const char *)data + 1, size - 1);
    any_ids(tokenizers[which], chat_choice_format(choices[which]), data + 1, size - 1);
    return 0;
}
