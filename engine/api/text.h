/*
 * text.h - text and ids: encoders, vocabularies, and prompts as a chat template writes them.
 */
#ifndef MEMWALL_ENGINE_API_TEXT_H
#define MEMWALL_ENGINE_API_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/api/options.h"

struct mw_model;

/*
 * An encoder turns text of any length into ids, in memory that does not grow with the text.  It
 * adds no begin token and recognises control tokens only if parse_special is set.
 */
struct mw_encoder;
/* Loads the tokenizer of the model if it is not loaded yet. */
int mw_encoder_new(struct mw_encoder **out, struct mw_model *m, bool parse_special,
                   struct err *e);
void mw_encoder_free(struct mw_encoder *x);
/*
 * Encode the next len bytes of the text; len 0 ends it.  *ids points to the next *n ids, valid
 * until the next call.  The encoder keeps text that further bytes could still change the ids
 * of. More than 128 KiB of such text is an error (ERR_UNSUPPORTED).
 */
int mw_encoder_push(struct mw_encoder *x, const char *text, size_t len, const uint32_t **ids,
                    size_t *n, struct err *e);
/* The id that begins every text of this model, or -1 if texts begin without one. */
int64_t mw_begin_id(const struct mw_model *m);

/* Copy at most n bytes of a token of the model to buf, as mw_vocab_piece() does.  0: the tokenizer
 * is not loaded. */
size_t mw_token_piece(const struct mw_model *m, uint32_t id, char *buf, size_t n);

/* Get the source of the model's chat template, which the caller frees; *out is NULL if it has
 * none. */
int mw_model_template(const struct mw_model *m, char **out, size_t *len, struct err *e);

/*
 * A vocabulary without a model.  The path names a model, a GGUF file that has only a
 * vocabulary, a folder with tokenizer.json, or that file.  Any thread.
 */
struct mw_vocab;

int mw_vocab_open(struct mw_vocab **out, const char *path, struct err *e);
void mw_vocab_close(struct mw_vocab *v);
uint32_t mw_vocab_size(const struct mw_vocab *v);
/* Returns sentences for the user about what its file leaves open or has wrong, or "". */
const char *mw_vocab_notice(const struct mw_vocab *v);

/* An encoder like that of mw_encoder_new(), without its limit of 128 KiB. */
int mw_vocab_encoder(struct mw_encoder **out, const struct mw_vocab *v, bool parse_special,
                     struct err *e);
/*
 * Decode n ids.  *text is valid UTF-8 of *len bytes and a NUL; the caller frees it with free().
 * Control tokens are left out, or spelled if show_control is set.
 */
int mw_vocab_decode(const struct mw_vocab *v, const uint32_t *ids, size_t n, bool show_control,
                    char **text, size_t *len, struct err *e);
/* Copy at most n bytes of one token, which may be a control token, to buf.  Returns the length
 * of the token, at most MW_PIECE_MAX.  A token may begin or end inside a character. */
#define MW_PIECE_MAX 1024
size_t mw_vocab_piece(const struct mw_vocab *v, uint32_t id, char *buf, size_t n);
/* "normal", "control", "user", "byte", "unknown", "unused" */
const char *mw_vocab_kind(const struct mw_vocab *v, uint32_t id);

/* ---- a conversation as the model sees it ---- */

struct mw_prompt_options {
    const char *format;   /* name of a built-in chat format; NULL: the model's template */
    const char *template; /* Jinja template of template_len bytes to use instead, or NULL */
    size_t template_len;
    const char *name, *template_name; /* files of the messages and the template, for errors */
    enum mw_think think;
    bool no_generation_prompt; /* do not open an answer after the messages */
};

struct mw_prompt {
    char *text; /* as the template prints it, control tokens spelled; len bytes and a NUL */
    size_t len;
    uint32_t *ids; /* [n_id] */
    size_t n_id;
    char notice[512]; /* a sentence to show to the user, or "" */
};

/*
 * Render a JSON array of messages with the model's chat template.  Messages are objects with
 * role, content (a string or a list of parts) and any other member that the template reads.
 * mw_prompt_free() frees *out.  An error in the JSON text has its offset, an error in the
 * template its line.
 */
int mw_vocab_chat(const struct mw_vocab *v, const char *json, size_t len,
                  const struct mw_prompt_options *o, struct mw_prompt *out, struct err *e);
void mw_prompt_free(struct mw_prompt *p);

#endif
