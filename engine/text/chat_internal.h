/*
 * chat_internal.h - the description of a chat format, and the writer that turns control
 * tokens and text into ids.
 */
#ifndef MEMWALL_ENGINE_TEXT_CHAT_INTERNAL_H
#define MEMWALL_ENGINE_TEXT_CHAT_INTERNAL_H

#include "engine/text/chat_format.h"
#include "engine/text/mark_words.h"

struct chat_writer;

enum think_kind {
    THINK_NONE,
    THINK_CHANNEL, /* between two tokens, with a label */
    THINK_TAGS,    /* between two tokens or texts */
    THINK_HARMONY, /* gpt-oss: <|channel|>LABEL<|message|>…<|end|>, more than one per answer */
    THINK_RECIPIENT, /* Muse: <|start|>assistant to=NAME<|message|>…<|eom|>, the same */
};

#define CHAT_N_TURN 16 /* marks that open a turn */

struct chat_format {
    const char *name; /* CHAT_TEMPLATE_NAME, or that of a built-in format */
    void (*render)(struct chat_writer *w, const struct chat_format *f,
                   const struct chat_message *m, size_t n, const struct chat_options *o);
    enum think_kind think;
    char open[MARK_BYTES], close[MARK_BYTES]; /* around thinking; empty for harmony */
    /* Tokens around a label and thinking that an answer may have instead (MedGemma). */
    bool has_other;
    uint32_t other_open, other_close;
    /* Around the answer after thinking (Granite 3.3); empty for most. */
    char reply_open[MARK_BYTES], reply_close[MARK_BYTES];
    /* Control tokens, and words of text, that open a turn and end an answer. */
    uint32_t turn_id[CHAT_N_TURN];
    char turn_word[CHAT_N_TURN][MARK_BYTES];
    size_t n_turn_id, n_turn_word;
    struct chat_template *template; /* NULL: raw */
    bool has_end;                   /* the template prints the token `end` after an answer */
    uint32_t end;
};

#define CHAT_TEMPLATE_NAME "template"

/* The marks of most formats with THINK_TAGS, and those of Gemma 4. */
#define THINK_OPEN    "<think>"
#define THINK_CLOSE   "</think>"
#define CHANNEL_OPEN  "<|channel>"
#define CHANNEL_CLOSE "<channel|>"

/* The marks of THINK_HARMONY.  Only messages in the channel "final" are the answer. */
#define HARMONY_START   "<|start|>"
#define HARMONY_CHANNEL "<|channel|>"
#define HARMONY_MESSAGE "<|message|>"
#define HARMONY_END     "<|end|>"
#define HARMONY_FINAL   "final"
/* Those of THINK_RECIPIENT are its start and message, and these.  Messages to itself are
 * thinking. */
#define RECIPIENT_END  "<|eom|>"
#define RECIPIENT_SELF "to=self"

/* Whether an answer consists of messages with a header. */
bool chat_has_messages(enum think_kind kind);
/* Whether a message with this header belongs to the answer. */
bool chat_shows_message(enum think_kind kind, struct span header);

/* ---- evaluated templates: chat_template.c ---- */

struct jinja_data;
struct jinja_value;

/*
 * Parse a template, find out by trial how it treats messages, and fill *f with its format.
 * Returns -1 with *e if it cannot be parsed or cannot render a message.
 */
int chat_template_open(struct chat_format *f, const char *name, const struct tokenizer *t,
                       const char *text, size_t len, struct err *e);
/* Fill *f with the built-in format of this name.  Returns -1 with *e if there is none, or if
 * the vocabulary lacks its control tokens. */
int chat_format_open(struct chat_format *f, const char *name, const struct tokenizer *t,
                     struct err *e);
void chat_template_close(struct chat_format *f);
/* Give the thinking of an answer under the i-th name that the template may read.  false: there
 * is none. */
bool chat_template_use_thought(struct chat_template *x, size_t i);
/* Add the marks that a template writes in trial conversations.  It needs no vocabulary. */
void chat_template_words(const char *text, size_t len, struct mark_words *out);
/* The time that the template prints: when it was opened, or another one (seconds since 1970).
 * Returns false for a time that has no date of four digits. */
int64_t chat_template_time(const struct chat_template *x);
bool chat_template_set_time(struct chat_template *x, int64_t time_s);
/* How the template treats a system message. */
enum system_kind { SYSTEM_PRINTED, SYSTEM_REFUSED, SYSTEM_LEFT_OUT };
enum system_kind chat_template_system(const struct chat_template *x);
/* Whether it refuses messages that do not begin with a system message. */
bool chat_template_needs_system(const struct chat_template *x);
/* Whether it prints a message only if its content is a list of parts. */
bool chat_template_has_parts(const struct chat_template *x);
void chat_render_template(struct chat_writer *w, const struct chat_format *f,
                          const struct chat_message *m, size_t n, const struct chat_options *o);
/* The same for n messages with `bytes` bytes of text that list makes, with sources from 1. */
typedef struct jinja_value *chat_list_fn(struct jinja_data *d, const void *ctx);
void chat_template_render_list(struct chat_writer *w, const struct chat_format *f,
                               chat_list_fn *list, const void *ctx, size_t n, size_t bytes,
                               const struct chat_options *o);

/*
 * Find the marks of f that answers may contain.  text is the model's template, or len is 0.
 * chat_marks.c and chat_openings.c describe how.
 */
void chat_find_marks(struct chat_format *f, const struct tokenizer *t, const char *text,
                     size_t len);
void chat_find_openings(struct chat_format *f, const struct tokenizer *t);
/* The same as chat_format_render, with the text of the prompt.  *out is empty before. */
int chat_format_show(const struct chat_format *f, const struct tokenizer *t,
                     const struct chat_message *messages, size_t n_message,
                     const struct chat_options *options, struct chat_prompt *out,
                     struct err *e);

/*
 * The writer collects text and encodes it as one run when a control token follows, like the
 * reference.  The template's text therefore merges with the content next to it.  After an
 * error all calls do nothing.
 */
struct chat_writer {
    const struct chat_format *format;
    const struct tokenizer *t;
    struct ids *out;
    size_t start; /* number of ids before the first call */
    char *text;   /* text that is not encoded yet */
    size_t len, cap;
    bool strips;               /* the last control token absorbs the white space after it */
    bool continues;            /* the text follows the ids of an answer, not a control token */
    struct chat_prompt *shown; /* if not NULL: all output is appended to its text, unstripped */
    size_t shown_cap;
    int rc;
    struct err *e;
};

/* Returns the id that begins a text, or -1. */
int64_t chat_bos_id(const struct tokenizer *t);
void chat_bos(struct chat_writer *w);
void chat_text(struct chat_writer *w, const char *text);
void chat_bytes(struct chat_writer *w, const char *text, size_t len);
void chat_ids(struct chat_writer *w, const uint32_t *id, size_t n);
void chat_flush(struct chat_writer *w, bool strip_end);
/* Write a control token by its id. */
void chat_control_id(struct chat_writer *w, uint32_t id);
/* Write the ids of an answer as it was generated, without its thinking and its end marks. */
void chat_answer_ids(struct chat_writer *w, const struct chat_message *m);

/* Returns s without white space at both ends, like Python's str.strip(). */
struct span chat_trim(struct span s);
struct span chat_trim_newlines(struct span s, bool start, bool end);

bool chat_same(struct span a, struct span b);

/* The bytes of all strings below a node, and a share for each value. */
size_t chat_json_bytes(const struct json_node *n);

/* Find the first or the last position of what in s.  Returns false if it does not occur. */
bool chat_find(struct span s, const char *what, bool last, size_t *at);

#endif
