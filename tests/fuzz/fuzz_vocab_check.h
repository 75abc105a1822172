/*
 * fuzz_vocab_check.h - rules for every accepted vocabulary.
 */
#ifndef MEMWALL_TESTS_FUZZ_FUZZ_VOCAB_CHECK_H
#define MEMWALL_TESTS_FUZZ_FUZZ_VOCAB_CHECK_H

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/tokenizer.h"

/* Encode, check the ids, decode. */
static inline void fuzz_encode(const struct tokenizer *t, const char *text, size_t len,
                               bool special)
{
    struct ids ids = { 0 };
    struct err e = ERR_INIT;
    struct decoder d = { .show_control = true };
    char buf[DECODE_MAX];

    if (tokenizer_encode(t, text, len, special, true, &ids, &e) != 0) {
        /* Only text with bytes that are not in the vocabulary may be refused. */
        if (e.code != ERR_UNSUPPORTED || tokenizer_info(t)->unk >= 0)
            abort();
        ids_free(&ids);
        return;
    }
    if (ids.n < tokenizer_least_ids(t, len) && !special)
        abort();
    for (size_t i = 0; i < ids.n; i++) {
        enum token_kind kind = tokenizer_kind(t, ids.id[i]);
        size_t n;

        if (ids.id[i] >= tokenizer_info(t)->n_token || kind == TOKEN_UNUSED)
            abort();
        if (!special && kind == TOKEN_CONTROL && ids.id[i] != tokenizer_info(t)->unk)
            abort();
        if (kind == TOKEN_UNKNOWN && ids.id[i] != tokenizer_info(t)->unk)
            abort();
        n = decoder_push(&d, t, ids.id[i], buf);
        if (n > DECODE_MAX || !utf8_is_valid(buf, n))
            abort();
    }
    ids_free(&ids);
}

/* Use only the end of the text: longer inputs are slow with a sanitizer and find no more. */
static inline void fuzz_check_tokenizer(const struct tokenizer *t, const char *text, size_t len)
{
    const size_t most = 400;
    static const char plain[] =
        "Hello  world\n\n\t 123 \xe2\x96\x81 \xf0\x9f\x98\x80 e\xcc\x81 \xff";

    if (tokenizer_bytes(t) > tokenizer_bytes_bound(tokenizer_info(t)))
        abort();
    if (len > most) {
        text += len - most;
        len = most;
    }
    fuzz_encode(t, plain, sizeof plain - 1, false);
    fuzz_encode(t, text, len, false);
    fuzz_encode(t, text, len, true);
}

#endif
