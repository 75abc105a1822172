/*
 * vocab_rules.h - rules that the readers of GGUF and tokenizer.json vocabularies share: kinds
 * of tokens and names of patterns.
 */
#ifndef MEMWALL_ENGINE_FORMAT_VOCAB_RULES_H
#define MEMWALL_ENGINE_FORMAT_VOCAB_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/format/vocab.h"
#include "engine/format/vocab_added.h"

/* Files disagree on the kind of the same token.  Returns the kind to use. */
enum token_kind vocab_kind(enum vocab_model model, uint32_t id, const char *text, size_t len,
                           enum token_kind stated);

/* Returns 10 for "<0x0A>"; -1 for other texts. */
int vocab_byte(const char *text, size_t len);

/* Add a token to the counts of *info. */
int vocab_count(struct vocab_info *info, uint32_t id, const char *text, size_t len,
                enum token_kind kind, struct err *e);

/* Refuse a vocabulary whose words have no merges, and would be cut into characters in silence. */
int vocab_check_merges(const struct vocab_info *info, struct err *e);

/* The end of a message about a tokenizer.json that cannot be used. */
#define VOCAB_ADVICE                                                                           \
    "; if this file was saved again or changed, take the original tokenizer.json, or a GGUF "  \
    "file of the model"

/* Append a sentence to info->notice, unless it does not fit. */
void vocab_note(struct vocab_info *info, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Set pattern and ignore_merges by the name of a rule in tokenizer.ggml.pre.  Returns false if
 * the name is unknown. */
bool vocab_pre_name(struct vocab_info *info, const char *pre);

/* The tokens by which a vocabulary is recognised.  Start from { 0 }. */
struct vocab_signs {
    const char *pre; /* the rule of the vocabulary that has a token; NULL: none is known */
    uint64_t marks;  /* a bit for each control token that narrows down a family */
};

/* Look at a token.  The tokens come in the order of their ids. */
void vocab_signs_look(struct vocab_signs *s, uint32_t id, const char *text, size_t len,
                      enum token_kind kind);

/* Choose the rule of a file that names none, or an unknown one: by its tokens, else by its
 * architecture, with a notice.  stated may be NULL. */
void vocab_pre_guess(struct vocab_info *info, const struct vocab_signs *s, const char *arch,
                     const char *stated);

/* Set the pattern from the regular expressions of the steps of a tokenizer.json, in order.  Known
 * patterns that follow each other are joined by "+". */
int vocab_pre_regex(struct vocab_info *info, const char *const *regex, size_t n, struct err *e);

#define VOCAB_REGEX_DIGITS  "\\p{N}"
#define VOCAB_REGEX_NUMBERS "\\p{N}+"
/* Line breaks, which are joined with the text after them. */
#define VOCAB_REGEX_LINES "(?:\\r?\\n)+(?!\\r?\\n)"
#define VOCAB_REGEX_GPT2                                                                       \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* The two sources of vocabularies. */
int vocab_gguf_info(const struct catalogue *c, struct vocab_info *info, struct err *e);
int vocab_gguf_read(const struct catalogue *c, struct vocab_info *info,
                    const struct vocab_sink *sink, struct err *e);
/* Check that the arrays of a GGUF vocabulary have the right types and as many entries as the
 * embedding has rows.  A file without a vocabulary passes. */
int vocab_gguf_check(const struct catalogue *c, struct err *e);
int vocab_json_read(const struct catalogue *c, struct vocab_info *info,
                    const struct vocab_sink *sink, struct err *e);

/* The parts of tokenizer_config.json that a vocabulary needs. */
struct vocab_config {
    int add_bos; /* -1: not stated */
    /* Texts of bos, eos, unk and pad; empty if not stated. */
    char special[4][VOCAB_MAX_TEXT + 1];
    size_t special_len[4];
    struct added_list added; /* of added_tokens_decoder, in the order of the ids */
};

/* Returns the path of a file of the snapshot for messages, malloc'ed; NULL without memory. */
char *vocab_file_name(const struct catalogue *c, const char *name);

/* Without the file, all values are "not stated".  Free *out, also after a failure. */
int vocab_config_read(const struct catalogue *c, struct vocab_config *out, struct err *e);
void vocab_config_free(struct vocab_config *c);
int vocab_config_template(const struct catalogue *c, char **out, size_t *len, struct err *e);

#define VOCAB_MAX_TEMPLATE ((size_t)1 << 20)

#endif
