/*
 * Evaluate the model's own template for a conversation and turn the output into ids.
 *
 * The evaluator records the source of every byte that it prints.  Control tokens are
 * recognised only in text from the template or the program, so a message cannot spell one
 * in any template.  All text between two control tokens is encoded
 * as one run, as in the reference.
 */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/text/chat_internal.h"
#include "engine/text/jinja.h"

/*
 * Limit of the memory for the values of one rendering: a constant, a share per message and a
 * multiple of their text.  engine/session/plan_input.c includes it in the plan.  Published
 * templates need less than half.  The memory is freed before the text is encoded.
 */
#define MEMORY_BASE        ((size_t)1 << 20)
#define MEMORY_PER_MESSAGE 1024
#define MEMORY_PER_PART    2048 /* for its content as a list of one part */
#define MEMORY_PER_BYTE    2
/* Templates print a definition of a tool several times over before it is a part of the prompt. */
#define MEMORY_PER_TOOL_BYTE 8

/* No message has this source. */
#define TOOLS_SOURCE UINT32_MAX

#define N_THOUGHT     8
#define THOUGHT_BYTES 32

#define LAST_TIME_S INT64_C(253402300799) /* the end of the year 9999 */

struct chat_template {
    struct jinja *jinja;
    const struct tokenizer *t;
    int64_t now_s; /* time of opening: a date that changes would change old prompts */
    struct tm now; /* the same, here */
    char bos[VOCAB_MAX_TEXT], eos[VOCAB_MAX_TEXT], unk[VOCAB_MAX_TEXT], pad[VOCAB_MAX_TEXT];
    size_t n_bos, n_eos, n_unk, n_pad;
    char gap[8]; /* white space before old answers that the generation prompt lacks */
    size_t n_gap;
    enum system_kind system;
    bool joins; /* join messages of the same role, because the template refuses them */
    /* Members of a message that may be the thinking of an answer; the one in use. */
    char thought[N_THOUGHT][THOUGHT_BYTES];
    size_t n_thought, thought_at;
    bool needs_system; /* it refuses messages without a system message: begin with an empty one
                        */
    bool has_parts;    /* it prints a message only if its content is a list of parts */
};

/* ---- variables ---- */

static size_t token_text(const struct tokenizer *t, int64_t id, char *buf)
{
    return id >= 0 ? tokenizer_piece(t, (uint32_t)id, true, buf, VOCAB_MAX_TEXT) : 0;
}

static void define_token(struct jinja_data *d, const char *name, const char *text, size_t n)
{
    jinja_define(d, name, jinja_string(d, text, n, JINJA_TRUSTED));
}

/* Define the variables that transformers passes besides the messages. */
static void define_common(const struct chat_template *x, struct jinja_data *d,
                          const struct chat_options *o)
{
    static const char *const thinking[] = { "enable_thinking", "thinking" };

    define_token(d, "bos_token", x->bos, x->n_bos);
    define_token(d, "eos_token", x->eos, x->n_eos);
    if (x->n_unk > 0)
        define_token(d, "unk_token", x->unk, x->n_unk);
    if (x->n_pad > 0)
        define_token(d, "pad_token", x->pad, x->n_pad);
    jinja_define(d, "add_generation_prompt", jinja_bool(d, o->add_generation_prompt));
    jinja_define(d, "tools",
                 o->tools != NULL ? jinja_from_json(d, o->tools, TOOLS_SOURCE) : jinja_none(d));
    jinja_define(d, "documents", jinja_none(d));
    for (size_t i = 0; i < 2 && o->think != CHAT_THINK_DEFAULT; i++)
        jinja_define(d, thinking[i], jinja_bool(d, o->think == CHAT_THINK_ON));
    if (o->date != NULL)
        define_token(d, "date_string", o->date, strlen(o->date));
}

static const char *role_text(enum chat_role role)
{
    switch (role) {
    case CHAT_SYSTEM: return "system";
    case CHAT_USER: return "user";
    case CHAT_ASSISTANT: return "assistant";
    }
    return "user";
}

struct list {
    const struct chat_message *m;
    size_t n;
    const char *thought; /* the member that is the thinking; NULL: no message has any */
    bool has_parts;
};

static struct jinja_value *message_list(struct jinja_data *d, const void *ctx)
{
    const struct list *l = ctx;
    struct jinja_value *list = jinja_list(d);
    struct jinja_value *(*make)(struct jinja_data *, const char *, size_t, uint32_t) =
        l->has_parts ? jinja_parts : jinja_string;

    for (size_t i = 0; i < l->n; i++) {
        const struct chat_message *m = &l->m[i];
        struct jinja_value *one = jinja_dict(d);
        const char *role = role_text(m->role);
        uint32_t source = (uint32_t)i + 1;

        jinja_set(d, one, "role", jinja_string(d, role, strlen(role), JINJA_TRUSTED));
        jinja_set(d, one, "content",
                  make(d, m->content != NULL ? m->content : "", m->len, source));
        if (m->reasoning != NULL)
            jinja_set(d, one, l->thought,
                      jinja_string(d, m->reasoning, m->reasoning_len, source));
        jinja_append(d, list, one);
    }
    return list;
}

static bool has_source(const struct jinja_text *text, uint32_t source)
{
    for (size_t i = 0; i < text->n_run; i++)
        if (text->runs[i].source == source)
            return true;
    return false;
}

static int render(const struct chat_template *x, chat_list_fn *list, const void *ctx, size_t n,
                  size_t bytes, const struct chat_options *o, struct jinja_text *out,
                  struct err *e)
{
    struct jinja_data *d;
    size_t per_message = MEMORY_PER_MESSAGE + (x->has_parts ? MEMORY_PER_PART : 0);
    size_t room = (SIZE_MAX - MEMORY_BASE) / (MEMORY_PER_BYTE + per_message);
    size_t most = n < room && bytes < room
                      ? MEMORY_BASE + n * per_message + bytes * MEMORY_PER_BYTE
                      : SIZE_MAX;
    int rc;

    if (o->tools != NULL && most < SIZE_MAX)
        most += chat_json_bytes(o->tools) * MEMORY_PER_TOOL_BYTE;
    *out = (struct jinja_text){ 0 };
    if (jinja_data_new(&d, most, e) != 0)
        return -1;
    jinja_define(d, "messages", list(d, ctx));
    define_common(x, d, o);
    rc = jinja_render(x->jinja, d, &x->now, out, e);
    if (rc == 0 && o->tools != NULL && !has_source(out, TOOLS_SOURCE)) {
        jinja_text_free(out);
        err_set(e, ERR_UNSUPPORTED, "the chat template prints no tools");
        rc = err_at(e, NULL, ERR_NO_OFFSET, "tools");
    }
    if (rc != 0 && e->code == ERR_ARGUMENT) {
        struct err own = *e;

        err_set(e, ERR_ARGUMENT, "the chat template refuses these messages: %s", own.what);
    }
    jinja_data_free(d);
    return rc;
}

/* ---- output to ids ---- */

/* Returns the length of the white space at the start of s. */
static size_t leading_space(struct span s)
{
    struct span rest = chat_trim(s);

    return rest.n > 0 ? (size_t)(rest.s - s.s) : s.n;
}

/*
 * Write text s of a message.  If the generated ids are known and s equals the content apart
 * from white space at its ends, write the ids.  They were generated right after a prompt, so
 * white space that the template prints only before old answers is removed.
 */
static void put_message(struct chat_writer *w, const struct chat_message *m, struct span s)
{
    const struct chat_template *x = w->format->template;

    if (m->ids == NULL ||
        !chat_same(chat_trim(s), chat_trim((struct span){ m->content, m->len }))) {
        chat_bytes(w, s.s, s.n);
        return;
    }
    if (x->n_gap > 0 && w->len >= x->n_gap &&
        memcmp(w->text + w->len - x->n_gap, x->gap, x->n_gap) == 0)
        w->len -= x->n_gap;
    chat_answer_ids(w, m);
}

static void put_trusted(struct chat_writer *w, struct span s)
{
    size_t from = 0, at, n;
    uint32_t id;

    while (tokenizer_next_control(w->t, s.s, from, s.n, &at, &n, &id)) {
        chat_bytes(w, s.s + from, at - from);
        chat_control_id(w, id);
        from = at + n;
    }
    chat_bytes(w, s.s + from, s.n - from);
}

/* Whether the template begins its output with the begin token, apart from white space. */
static bool begins_with_bos(const struct jinja_text *text, int64_t bos, const struct tokenizer *t)
{
    char name[VOCAB_MAX_TEXT];
    size_t n = tokenizer_piece(t, (uint32_t)bos, true, name, sizeof name), space;

    if (text->n_run == 0 || text->runs[0].source != JINJA_TRUSTED)
        return false;
    space = leading_space((struct span){ text->bytes, text->runs[0].len });
    return n > 0 && text->runs[0].len - space >= n &&
           memcmp(text->bytes + space, name, n) == 0;
}

static void put_text(struct chat_writer *w, const struct jinja_text *text,
                     const struct chat_message *m, size_t n)
{
    const struct vocab_info *info = tokenizer_info(w->t);
    const char *at = text->bytes;

    if (info->chat_adds_bos && info->bos >= 0 && !begins_with_bos(text, info->bos, w->t))
        chat_bos(w);
    for (size_t i = 0; i < text->n_run; i++) {
        struct span s = { at, text->runs[i].len };
        uint32_t source = text->runs[i].source;

        if (source == JINJA_TRUSTED)
            put_trusted(w, s);
        else if (source <= n)
            put_message(w, &m[source - 1], s);
        else
            chat_bytes(w, s.s, s.n);
        at += s.n;
    }
}

/* ---- messages that the template refuses ---- */

/* A list in which some messages are joined.  Owns the joined texts. */
struct joined {
    struct chat_message *m;
    size_t n;
    char **text; /* [n], NULL if the message was not joined */
};

static void joined_free(struct joined *j)
{
    for (size_t i = 0; j->text != NULL && i < j->n; i++)
        free(j->text[i]);
    free(j->text);
    free(j->m);
}

static int join(struct joined *j, const struct chat_message *more, struct err *e)
{
    struct chat_message *last = &j->m[j->n - 1];
    size_t n = last->len + 2 + more->len;
    char *text = malloc(n + 1);

    if (text == NULL)
        return err_memory(e, "a message of %zu bytes", n);
    if (last->len > 0)
        memcpy(text, last->content, last->len);
    memcpy(text + last->len, "\n\n", 2);
    if (more->len > 0)
        memcpy(text + last->len + 2, more->content, more->len);
    free(j->text[j->n - 1]);
    j->text[j->n - 1] = text;
    *last = (struct chat_message){ .role = more->role, .content = text, .len = n };
    return 0;
}

static int join_messages(const struct chat_template *x, struct joined *j,
                         const struct chat_message *m, size_t n, bool is_strict, struct err *e)
{
    bool has_folds = x->system == SYSTEM_REFUSED && !is_strict;
    bool has_joins = x->joins && !is_strict;

    *j = (struct joined){ .m = calloc(n + 2, sizeof *j->m),
                          .text = calloc(n + 2, sizeof *j->text) };
    if (j->m == NULL || j->text == NULL)
        return err_memory(e, "%zu messages", n);
    if (x->needs_system && !is_strict && (n == 0 || m[0].role != CHAT_SYSTEM))
        j->m[j->n++] = (struct chat_message){ .role = CHAT_SYSTEM, .content = "" };
    for (size_t i = 0; i < n; i++) {
        const struct chat_message *last = j->n > 0 ? &j->m[j->n - 1] : NULL;
        bool is_folded = has_folds && m[i].role == CHAT_SYSTEM;
        bool folds =
            last != NULL && has_folds && last->role == CHAT_SYSTEM && m[i].role == CHAT_USER;
        bool repeats = last != NULL && has_joins && last->role == m[i].role;

        if (folds || repeats) {
            if (join(j, &m[i], e) != 0)
                return -1;
            continue;
        }
        j->m[j->n++] = m[i];
        /* If no question follows, the system message becomes the question. */
        if (is_folded && (i + 1 == n || m[i + 1].role == CHAT_ASSISTANT))
            j->m[j->n - 1].role = CHAT_USER;
    }
    return 0;
}

void chat_template_render_list(struct chat_writer *w, const struct chat_format *f,
                               chat_list_fn *list, const void *ctx, size_t n, size_t bytes,
                               const struct chat_options *o)
{
    struct jinja_text text;

    if (w->rc != 0)
        return;
    w->rc = render(f->template, list, ctx, n, bytes, o, &text, w->e);
    if (w->rc == 0)
        put_text(w, &text, NULL, 0);
    jinja_text_free(&text);
}

void chat_render_template(struct chat_writer *w, const struct chat_format *f,
                          const struct chat_message *m, size_t n, const struct chat_options *o)
{
    struct joined j;
    struct jinja_text text = { 0 };
    size_t bytes = 0;

    w->rc = join_messages(f->template, &j, m, n, o->is_strict, w->e);
    for (size_t i = 0; i < j.n; i++)
        bytes += j.m[i].len + j.m[i].reasoning_len;
    /* Refuse text that cannot fit before rendering it. */
    if (w->rc == 0 && w->out->max > 0 && tokenizer_least_ids(w->t, bytes) > w->out->max)
        w->rc = err_set(w->e, ERR_CONTEXT,
                        "a prompt of more than %zu token%s does not fit the context",
                        w->out->max, w->out->max == 1 ? "" : "s");
    if (w->rc == 0)
        w->rc =
            render(f->template, message_list,
                   &(struct list){ j.m, j.n, f->template->thought[f->template->thought_at],
                                   f->template->has_parts },
                   j.n, bytes, o, &text, w->e);
    if (w->rc == 0)
        put_text(w, &text, j.m, j.n);
    jinja_text_free(&text);
    joined_free(&j);
}

/* ---- trials ---- */

#define TRIAL "hello"

static struct chat_message trial_message(enum chat_role role)
{
    return (struct chat_message){ .role = role, .content = TRIAL, .len = strlen(TRIAL) };
}

/* Returns the number of messages that come before those of a trial. */
static uint32_t n_before(const struct chat_template *x, enum chat_role first)
{
    return x->needs_system && first != CHAT_SYSTEM ? 1 : 0;
}

static int try_roles(const struct chat_template *x, const enum chat_role *roles, size_t n,
                     struct jinja_text *out, struct err *e)
{
    const struct chat_options o = { .add_generation_prompt = true };
    struct chat_message m[4] = { { .role = CHAT_SYSTEM, .content = "" } };
    size_t first = n_before(x, roles[0]);

    for (size_t i = 0; i < n; i++)
        m[first + i] = trial_message(roles[i]);
    n += first;
    return render(x, message_list, &(struct list){ m, n, NULL, x->has_parts }, n,
                  n * strlen(TRIAL), &o, out, e);
}

/* Find the end of the first text of this source in the output.  false: there is none. */
static bool find_source(const struct jinja_text *text, uint32_t source, size_t *run,
                        size_t *end)
{
    *end = 0;
    for (*run = 0; *run < text->n_run; (*run)++) {
        *end += text->runs[*run].len;
        if (text->runs[*run].source == source)
            return true;
    }
    return false;
}

/* Find the token that the template prints after an answer, ignoring white space. */
static void find_end(struct chat_format *f, const struct jinja_text *text, size_t run,
                     size_t end)
{
    const struct chat_template *x = f->template;
    size_t space, at, n;
    struct span s;
    uint32_t id;

    if (run + 1 >= text->n_run || text->runs[run + 1].source != JINJA_TRUSTED)
        return;
    s = (struct span){ text->bytes + end, text->runs[run + 1].len };
    space = leading_space(s);
    if (tokenizer_next_control(x->t, s.s, space, s.n, &at, &n, &id) && at == space) {
        f->has_end = true;
        f->end = id;
    }
}

/* Find white space before old answers that the generation prompt does not end with. */
static void find_gap(struct chat_template *x, struct span before_answer)
{
    static const enum chat_role user[] = { CHAT_USER };
    struct err ignored = ERR_INIT;
    struct jinja_text text;
    size_t run, end;
    struct span gap;
    uint32_t first = 1 + n_before(x, CHAT_USER);

    if (try_roles(x, user, 1, &text, &ignored) == 0 && find_source(&text, first, &run, &end) &&
        before_answer.n >= text.len - end &&
        memcmp(before_answer.s, text.bytes + end, text.len - end) == 0) {
        gap = (struct span){ before_answer.s + text.len - end,
                             before_answer.n - (text.len - end) };
        if (gap.n <= sizeof x->gap && leading_space(gap) == gap.n) {
            memcpy(x->gap, gap.s, gap.n);
            x->n_gap = gap.n;
        }
    }
    jinja_text_free(&text);
}

/* Find out how the template prints an old answer. */
static void try_answer(struct chat_format *f)
{
    static const enum chat_role roles[] = { CHAT_USER, CHAT_ASSISTANT, CHAT_USER };
    struct chat_template *x = f->template;
    struct err ignored = ERR_INIT;
    struct jinja_text text;
    size_t run, from, end;
    uint32_t first = 1 + n_before(x, CHAT_USER);

    if (try_roles(x, roles, 3, &text, &ignored) == 0 &&
        find_source(&text, first, &run, &from) && find_source(&text, first + 1, &run, &end) &&
        end - text.runs[run].len >= from) {
        find_end(f, &text, run, end);
        find_gap(x, (struct span){ text.bytes + from, end - text.runs[run].len - from });
    }
    jinja_text_free(&text);
}

/* Returns whether all bytes of the text of a source are in the output. */
static bool has_all(const struct jinja_text *text, uint32_t source)
{
    size_t n = 0;

    for (size_t i = 0; i < text->n_run; i++)
        n += text->runs[i].source == source ? text->runs[i].len : 0;
    return n >= strlen(TRIAL);
}

static int try_user(const struct chat_template *x, struct err *e)
{
    static const enum chat_role user[] = { CHAT_USER };
    struct jinja_text text;
    int rc = try_roles(x, user, 1, &text, e);

    if (rc == 0 && !has_all(&text, 1 + n_before(x, CHAT_USER)))
        rc = err_set(e, ERR_FORMAT, "it does not print the messages");
    jinja_text_free(&text);
    return rc;
}

/* Try a question, also after an empty system message if the template refuses it alone. */
static int try_question(struct chat_template *x, struct err *e)
{
    struct err refused = ERR_INIT;

    x->needs_system = false;
    if (try_user(x, e) == 0)
        return 0;
    x->needs_system = e->code == ERR_ARGUMENT;
    if (!x->needs_system || try_user(x, &refused) != 0)
        return -1;
    *e = (struct err)ERR_INIT;
    return 0;
}

/* Returns whether a conversation has its texts, and not the parts as Python prints them. */
static bool prints_parts(const struct chat_template *x, const enum chat_role *roles, size_t n)
{
    static const char repr[] = "'type':", json[] = "\"type\":";
    struct err refused = ERR_INIT;
    struct jinja_text text;
    size_t at;
    bool is_right = try_roles(x, roles, n, &text, &refused) == 0;
    struct span all = { text.bytes, text.len };

    for (size_t i = 0; is_right && i < n; i++)
        is_right = has_all(&text, 1 + n_before(x, roles[0]) + (uint32_t)i);
    is_right = is_right && !chat_find(all, repr, false, &at) && !chat_find(all, json, false, &at);
    jinja_text_free(&text);
    return is_right;
}

/* Find the form of messages that the template prints: a list of parts is the other one.  Returns
 * -1 with the reason of the usual form. */
static int try_forms(struct chat_template *x, struct err *e)
{
    static const enum chat_role roles[] = { CHAT_USER, CHAT_ASSISTANT, CHAT_USER };
    struct err refused = ERR_INIT;

    if (try_question(x, e) == 0)
        return 0;
    x->has_parts = true;
    if (try_question(x, &refused) == 0 && prints_parts(x, roles, 3)) {
        *e = (struct err)ERR_INIT;
        return 0;
    }
    x->has_parts = x->needs_system = false;
    return -1;
}

static int try_messages(struct chat_template *x, struct err *e)
{
    static const enum chat_role system[] = { CHAT_SYSTEM, CHAT_USER };
    static const enum chat_role twice[] = { CHAT_USER, CHAT_USER };
    struct err refused = ERR_INIT;
    struct jinja_text text;
    size_t run, end;

    if (try_forms(x, e) != 0)
        return -1;
    if (try_roles(x, system, 2, &text, &refused) != 0)
        x->system = SYSTEM_REFUSED;
    else if (!find_source(&text, 1, &run, &end))
        x->system = SYSTEM_LEFT_OUT;
    jinja_text_free(&text);
    x->joins = try_roles(x, twice, 2, &text, &refused) != 0;
    jinja_text_free(&text);
    return 0;
}

/* ---- the thinking of an answer ---- */

static void add_thought(struct chat_template *x, struct span name)
{
    char *to = x->thought[x->n_thought < N_THOUGHT ? x->n_thought : 0];

    if (x->n_thought == N_THOUGHT || name.n >= THOUGHT_BYTES)
        return;
    memcpy(to, name.s, name.n);
    to[name.n] = '\0';
    for (size_t i = 0; i < x->n_thought; i++)
        if (strcmp(x->thought[i], to) == 0)
            return;
    x->n_thought++;
}

/* Find the members of messages that may be thinking by their names.  Templates differ. */
static void find_thoughts(struct chat_template *x, const char *text, size_t len)
{
    static const char usual[] = "reasoning_content";

    add_thought(x, (struct span){ usual, sizeof usual - 1 });
    for (size_t i = 1; i < len; i++) {
        struct span name = { text + i, 0 };

        if (strchr(".'\"", text[i - 1]) == NULL)
            continue;
        while (i + name.n < len &&
               (isalnum((unsigned char)name.s[name.n]) || name.s[name.n] == '_'))
            name.n++;
        if (mark_is_thinking(name))
            add_thought(x, name);
    }
}

bool chat_template_use_thought(struct chat_template *x, size_t i)
{
    if (i >= x->n_thought)
        return false;
    x->thought_at = i;
    return true;
}

/* ---- marks ---- */

/* Add the words that the template prints after the first text of a source; 0: all words. */
static void add_words(struct mark_words *out, const struct jinja_text *text, uint32_t source)
{
    const char *at = text->bytes;
    bool is_after = source == JINJA_TRUSTED;

    for (size_t i = 0; i < text->n_run; i++) {
        if (is_after && text->runs[i].source == JINJA_TRUSTED)
            mark_words_add(out, (struct span){ at, text->runs[i].len });
        is_after = is_after || text->runs[i].source == source;
        at += text->runs[i].len;
    }
}

static void add_trial(const struct chat_template *x, const struct list *l,
                      const struct chat_options *o, uint32_t source, struct mark_words *out)
{
    struct err ignored = ERR_INIT;
    struct jinja_text text;

    if (render(x, message_list, l, l->n, 64, o, &text, &ignored) == 0)
        add_words(out, &text, source);
    jinja_text_free(&text);
}

/* The first text of a conversation may be a long one about tools, which names no marks. */
static void try_words(const struct chat_template *x, struct mark_words *out)
{
    struct chat_message m[] = { trial_message(CHAT_USER), trial_message(CHAT_ASSISTANT),
                                trial_message(CHAT_USER) };
    struct chat_message system[] = { trial_message(CHAT_SYSTEM), trial_message(CHAT_USER) };

    for (int think = CHAT_THINK_DEFAULT; think <= CHAT_THINK_OFF; think++) {
        const struct chat_options o = { .add_generation_prompt = true, .think = think };

        for (size_t i = 0; i < x->n_thought; i++) {
            const struct list two = { m, 2, x->thought[i], x->has_parts };

            m[1].reasoning = TRIAL;
            m[1].reasoning_len = strlen(TRIAL);
            add_trial(x, &two, &o, 1, out);
        }
        m[1].reasoning = NULL;
        for (size_t n = 1; n <= 3; n++)
            add_trial(x, &(struct list){ m, n, NULL, x->has_parts }, &o, 1, out);
        add_trial(x, &(struct list){ system, 2, NULL, x->has_parts }, &o, JINJA_TRUSTED, out);
    }
}

void chat_template_words(const char *text, size_t len, struct mark_words *out)
{
    struct chat_template x = { .t = NULL };
    struct err ignored = ERR_INIT;
    time_t now = time(NULL);

    localtime_r(&now, &x.now);
    find_thoughts(&x, text, len);
    if (jinja_parse(&x.jinja, text, len, &ignored) == 0) {
        (void)try_forms(&x, &ignored);
        try_words(&x, out);
    }
    jinja_free(x.jinja);
}

/* ---- opening ---- */

int64_t chat_template_time(const struct chat_template *x)
{
    return x->now_s;
}

bool chat_template_set_time(struct chat_template *x, int64_t time_s)
{
    time_t now = (time_t)time_s;
    struct tm tm;

    if (time_s < 0 || time_s > LAST_TIME_S || localtime_r(&now, &tm) == NULL)
        return false;
    x->now_s = time_s;
    x->now = tm;
    return true;
}

int chat_template_open(struct chat_format *f, const char *name, const struct tokenizer *t,
                       const char *text, size_t len, struct err *e)
{
    const struct vocab_info *info = tokenizer_info(t);
    bool is_own = strcmp(name, CHAT_TEMPLATE_NAME) == 0;
    struct chat_template *x = calloc(1, sizeof *x);

    *f = (struct chat_format){ .name = name,
                               .render = chat_render_template,
                               .template = x };
    if (x == NULL)
        return err_memory(e, "a chat template");
    x->t = t;
    x->n_bos = token_text(t, is_own ? info->bos : chat_bos_id(t), x->bos);
    x->n_eos = token_text(t, info->eos, x->eos);
    x->n_unk = token_text(t, info->unk, x->unk);
    x->n_pad = token_text(t, info->pad, x->pad);
    (void)chat_template_set_time(x, (int64_t)time(NULL));
    find_thoughts(x, text, len);
    if (jinja_parse(&x->jinja, text, len, e) != 0 || try_messages(x, e) != 0) {
        chat_template_close(f);
        return -1;
    }
    try_answer(f);
    return 0;
}

void chat_template_close(struct chat_format *f)
{
    if (f->template == NULL)
        return;
    jinja_free(f->template->jinja);
    free(f->template);
    f->template = NULL;
}

bool chat_template_needs_system(const struct chat_template *x)
{
    return x->needs_system;
}

bool chat_template_has_parts(const struct chat_template *x)
{
    return x->has_parts;
}

enum system_kind chat_template_system(const struct chat_template *x)
{
    return x->system;
}
