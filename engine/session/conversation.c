#include "config.h"

#include "engine/session/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "engine/session/options.h"

static void turn_free(struct turn *t)
{
    free(t->text);
    free(t->thinking);
    ids_free(&t->ids);
}

void conversation_cut(struct conversation *c, size_t n_turn)
{
    while (c->n_turn > n_turn)
        turn_free(&c->turns[--c->n_turn]);
    if (c->n_dropped >= c->n_turn)
        c->n_dropped = c->kept = 0; /* the other turns fit again */
}

void conversation_cut_answer(struct conversation *c)
{
    uint32_t made = c->turns[c->n_turn - 1].attempt + 1;

    conversation_cut(c, c->n_turn - 1);
    if (c->n_turn > 0 && c->turns[c->n_turn - 1].attempt < made)
        c->turns[c->n_turn - 1].attempt = made;
}

void conversation_rewind(struct conversation *c, size_t n)
{
    size_t was_dropped = c->n_dropped;

    conversation_cut(c, n > c->n_before ? n - c->n_before : 0);
    if (n < c->n_before)
        c->n_before = n;
    if (c->n_before > 0 && (c->n_turn == 0 || was_dropped > c->n_dropped))
        c->is_partial = true; /* older messages fit again */
    else if (c->n_before == 0)
        c->is_partial = false;
}

static void free_stash(struct conversation *c)
{
    while (c->n_stash > 0)
        turn_free(&c->stash[--c->n_stash]);
    free(c->stash);
    c->stash = NULL;
}

void conversation_stash(struct conversation *c, size_t n, struct turn *turns, size_t room)
{
    size_t at = n > c->n_before ? n - c->n_before : 0;

    free_stash(c);
    at = at < c->n_turn ? at : c->n_turn;
    room = room < c->n_turn - at ? room : c->n_turn - at;
    if (room > 0) {
        memcpy(turns, c->turns + at, room * sizeof *turns);
        memset(c->turns + at, 0, room * sizeof *turns); /* they have moved */
    }
    c->stash = turns;
    c->n_stash = room;
    c->stash_at = c->n_before + at;
    c->stash_dropped = c->n_dropped;
    c->stash_kept = c->kept;
    c->stash_partial = c->is_partial;
    conversation_rewind(c, c->stash_at);
}

void conversation_unstash(struct conversation *c)
{
    if (c->stash == NULL)
        return;
    if (c->stash_at >= c->n_before) {
        conversation_rewind(c, c->stash_at);
        /* There is space for them: the array never shrinks. */
        if (c->n_stash > 0)
            memcpy(c->turns + c->n_turn, c->stash, c->n_stash * sizeof *c->turns);
        c->n_turn += c->n_stash;
        c->n_stash = 0;
        c->n_dropped = c->stash_dropped;
        c->kept = c->stash_kept;
        c->is_partial = c->stash_partial;
    }
    free_stash(c);
}

size_t conversation_forget(struct conversation *c, uint64_t max_bytes)
{
    uint64_t bytes = 0;
    size_t n = 0, most = c->kept > 0 ? c->kept - 1 : c->n_dropped;

    for (size_t i = 0; i < c->n_turn; i++)
        bytes += c->turns[i].len + c->turns[i].thinking_len;
    while (n < most && bytes > max_bytes) {
        bytes -= c->turns[n].len + c->turns[n].thinking_len;
        turn_free(&c->turns[n++]);
    }
    if (n == 0)
        return 0;
    memmove(c->turns, c->turns + n, (c->n_turn - n) * sizeof *c->turns);
    c->n_turn -= n;
    c->n_dropped -= n;
    c->kept -= c->kept > 0 ? n : 0;
    c->n_before += n;
    return n;
}

void conversation_free(struct conversation *c)
{
    conversation_cut(c, 0);
    free_stash(c);
    free(c->turns);
    *c = (struct conversation){ 0 };
}

struct turn *conversation_add(struct conversation *c, enum chat_role role, const char *text,
                              size_t len, struct err *e)
{
    struct turn *t;

    if (c->n_turn == c->cap) {
        size_t cap = c->cap * 2 + 8;
        struct turn *grown = realloc(c->turns, cap * sizeof *grown);

        if (grown == NULL) {
            err_memory(e, "a message");
            return NULL;
        }
        c->turns = grown;
        c->cap = cap;
    }
    t = &c->turns[c->n_turn];
    *t = (struct turn){ .role = role };
    if (turn_append(t, false, text, len, e) != 0)
        return NULL;
    c->n_turn++;
    return t;
}

int turn_reserve(struct turn *t, bool is_thinking, size_t len, struct err *e)
{
    char **to = is_thinking ? &t->thinking : &t->text;
    size_t n = is_thinking ? t->thinking_len : t->len;
    size_t *room = is_thinking ? &t->thinking_room : &t->room;
    char *grown;

    if (n + len < *room)
        return 0;
    grown = realloc(*to, n + len + 1);
    if (grown == NULL)
        return err_memory(e, "a message of %zu bytes", n + len);
    *to = grown;
    grown[n] = '\0';
    *room = n + len + 1;
    return 0;
}

static void trim(char **text, size_t len, size_t *room)
{
    char *less = *room > len + 1 ? realloc(*text, len + 1) : NULL;

    if (less != NULL) {
        *text = less;
        *room = len + 1;
    }
}

void turn_trim(struct turn *t)
{
    uint32_t *id = t->ids.n > 0 ? realloc(t->ids.id, t->ids.n * sizeof *id) : NULL;

    if (id != NULL) {
        t->ids.id = id;
        t->ids.cap = t->ids.n;
    }
    trim(&t->text, t->len, &t->room);
    if (t->thinking_len == 0) { /* NULL: the message has none */
        free(t->thinking);
        t->thinking = NULL;
        t->thinking_room = 0;
    }
    trim(&t->thinking, t->thinking_len, &t->thinking_room);
}

int turn_append(struct turn *t, bool is_thinking, const char *text, size_t len, struct err *e)
{
    char **to = is_thinking ? &t->thinking : &t->text;
    size_t *n = is_thinking ? &t->thinking_len : &t->len;
    size_t room = is_thinking ? t->thinking_room : t->room;

    if (*n + len >= room && turn_reserve(t, is_thinking, *n > 0 ? *n + len * 2 : len, e) != 0)
        return -1;
    if (len > 0)
        memcpy(*to + *n, text, len);
    *n += len;
    (*to)[*n] = '\0';
    return 0;
}

int turn_restore_cut(struct turn *t, const struct mw_cut *cut, struct err *e)
{
    size_t n = cut->n_ids <= MW_CUT_IDS ? cut->n_ids : 0;

    if (n > 0 && ids_append(&t->ids, cut->ids, n, e) != 0)
        return -1;
    t->has_saved_ids = n > 0;
    t->holds_thinking = cut->holds_thinking;
    if (cut->n_held <= TURN_HELD_MAX &&
        cut->n_held <= (cut->holds_thinking ? t->thinking_len : t->len))
        t->n_held = cut->n_held;
    return 0;
}

int turn_take_for_thinking(struct turn *t, struct err *e)
{
    if (turn_append(t, true, t->text, t->len, e) != 0)
        return -1;
    t->len = 0;
    t->text[0] = '\0';
    return 0;
}

void turn_take_back(struct turn *t, char held[TURN_HELD_MAX])
{
    size_t *len = t->holds_thinking ? &t->thinking_len : &t->len;
    char *text = t->holds_thinking ? t->thinking : t->text;

    if (t->n_held == 0)
        return;
    *len -= t->n_held;
    memcpy(held, text + *len, t->n_held);
    text[*len] = '\0';
    t->n_held = 0;
}

int conversation_add_aside(struct conversation *c, struct err *e)
{
    struct turn *answer;

    if (conversation_add(c, CHAT_USER, "", 0, e) == NULL)
        return -1;
    answer = conversation_add(c, CHAT_ASSISTANT, "", 0, e);
    if (answer == NULL) {
        conversation_cut(c, c->n_turn - 1);
        return -1;
    }
    answer->is_aside = true;
    return 0;
}

bool conversation_ends_aside(const struct conversation *c)
{
    return c->n_turn > 0 && c->turns[c->n_turn - 1].is_aside;
}

bool conversation_is_aside(const struct conversation *c, size_t i)
{
    return c->turns[i].is_aside || (i + 1 < c->n_turn && c->turns[i + 1].is_aside);
}

/* Whether the ids of a turn replace its text. */
static bool has_ids(const struct turn *t)
{
    return t->ids.n > 0 && !t->has_saved_ids;
}

static int render_raw(const struct conversation *c, const struct rendering *r, size_t n_turn,
                      struct ids *out, struct err *e)
{
    const struct vocab_info *info = tokenizer_info(r->tokenizer);
    bool is_first = true;

    if (info->add_bos && info->bos >= 0 && ids_push(out, (uint32_t)info->bos, e) != 0)
        return -1;
    for (size_t i = c->n_dropped; i < n_turn; i++) {
        const struct turn *t = &c->turns[i];
        int rc;

        if (conversation_is_aside(c, i))
            continue;
        rc = has_ids(t)
                 ? ids_append(out, t->ids.id, t->ids.n, e)
                 : tokenizer_encode(r->tokenizer, t->text, t->len, false, is_first, out, e);
        if (rc != 0)
            return -1;
        is_first = false;
    }
    return 0;
}

static struct chat_message message_of(const struct turn *t)
{
    /* The model does not see its old thinking: render such an answer from its text. */
    bool as_generated = has_ids(t) && t->thinking_len == 0;

    return (struct chat_message){ .role = t->role,
                                  .content = t->text,
                                  .len = t->len,
                                  .ids = as_generated ? t->ids.id : NULL,
                                  .n_ids = as_generated ? t->ids.n : 0 };
}

void asked_free(struct asked *a)
{
    json_free(a->messages);
    json_free(a->tools);
    ids_free(&a->ids);
    *a = (struct asked){ 0 };
}

static int render_ids(const struct asked *a, const struct rendering *r, struct ids *out,
                      struct err *e)
{
    uint32_t n_token = tokenizer_info(r->tokenizer)->n_token;

    for (size_t i = 0; i < a->ids.n; i++)
        if (a->ids.id[i] >= n_token)
            return err_set(e, ERR_ARGUMENT, "token %u is not one of the %u of the vocabulary",
                           a->ids.id[i], n_token);
    return ids_append(out, a->ids.id, a->ids.n, e);
}

static int render_messages(const struct json_node *messages, const struct json_node *tools,
                           const struct rendering *r, struct ids *out, struct err *e)
{
    struct chat_options o = { .add_generation_prompt = true, .tools = tools };
    struct chat_prompt p = { .ids.max = out->max };
    int rc;

    options_think(r->think, &o);
    if (chat_format_render_json(r->format, r->tokenizer, messages, &o, &p, e) != 0)
        return -1;
    rc = ids_append(out, p.ids.id, p.ids.n, e);
    chat_prompt_free(&p);
    return rc;
}

static int render_asked(const struct asked *a, const struct rendering *r, struct ids *out,
                        struct err *e)
{
    if (a->ids.n > 0)
        return render_ids(a, r, out, e);
    if (r->format == NULL)
        return err_set(e, ERR_UNSUPPORTED, "the model has no chat template");
    return render_messages(json_root(a->messages), json_root(a->tools), r, out, e);
}

int conversation_render(const struct conversation *c, const struct rendering *r, size_t n_turn,
                        struct ids *out, struct err *e)
{
    struct chat_options o = { .add_generation_prompt = true };
    struct chat_message *messages;
    size_t n = 0;
    int rc;

    if (c->asked != NULL)
        return render_asked(c->asked, r, out, e);
    if (r->format == NULL)
        return render_raw(c, r, n_turn, out, e);
    options_think(r->think, &o);
    messages = calloc(n_turn + 2, sizeof *messages);
    if (messages == NULL)
        return err_memory(e, "%zu messages", n_turn);
    if (c->system != NULL)
        messages[n++] = (struct chat_message){ .role = CHAT_SYSTEM,
                                               .content = c->system,
                                               .len = strlen(c->system) };
    if (c->kept > 0 && c->kept <= c->n_dropped)
        messages[n++] = message_of(&c->turns[c->kept - 1]);
    for (size_t i = c->n_dropped; i < n_turn; i++)
        if (!conversation_is_aside(c, i))
            messages[n++] = message_of(&c->turns[i]);
    rc = chat_format_render(r->format, r->tokenizer, messages, n, &o, out, e);
    free(messages);
    return rc;
}

#define OTHER_QUESTION "."

/* Returns whether a message is of the kind that comes before all questions. */
static bool is_instruction(const struct json_node *message)
{
    const char *role = json_as_string(json_get(message, "role"));

    return role != NULL && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

/* Returns how many messages do. */
static uint32_t n_instruction(const struct asked *a)
{
    const struct json_node *messages = json_root(a->messages);
    uint32_t n = 0;

    if (messages == NULL || messages->kind != JSON_IS_ARRAY)
        return 0;
    for (const struct json_node *m = messages->first; m != NULL && is_instruction(m);
         m = m->next)
        n++;
    return n;
}

static int render_asked_other(const struct asked *a, const struct rendering *r, struct ids *out,
                              struct err *e)
{
    static const struct json_node content = { .kind = JSON_IS_STRING,
                                              .key = "content",
                                              .text = OTHER_QUESTION,
                                              .len = sizeof OTHER_QUESTION - 1 };
    static const struct json_node role = {
        .kind = JSON_IS_STRING, .key = "role", .text = "user", .len = 4, .next = &content
    };
    uint32_t n = n_instruction(a), i = 0;
    const struct json_node *from;
    struct json_node *copy, all = { .kind = JSON_IS_ARRAY, .n = n + 1 };
    int rc;

    if (a->messages == NULL || (n == 0 && a->tools == NULL))
        return 0;
    copy = calloc((size_t)n + 1, sizeof *copy);
    if (copy == NULL)
        return err_memory(e, "%u messages", n);
    for (from = json_root(a->messages)->first; i < n; i++, from = from->next) {
        copy[i] = *from;
        copy[i].next = &copy[i + 1];
    }
    copy[n] = (struct json_node){ .kind = JSON_IS_OBJECT, .n = 2, .first = &role };
    all.first = copy;
    rc = render_messages(&all, json_root(a->tools), r, out, e);
    free(copy);
    return rc;
}

int conversation_render_other(const struct conversation *c, const struct rendering *r,
                              struct ids *out, struct err *e)
{
    char text[] = OTHER_QUESTION;
    struct turn turn = { .role = CHAT_USER, .text = text, .len = strlen(text) };
    struct conversation other = { .system = c->system, .turns = &turn, .n_turn = 1 };

    if (r->format == NULL)
        return 0;
    if (c->asked != NULL)
        return render_asked_other(c->asked, r, out, e);
    return c->system != NULL ? conversation_render(&other, r, 1, out, e) : 0;
}

bool conversation_asks_first(const struct conversation *c, size_t n_turn)
{
    if (c->asked == NULL)
        return n_turn <= 1;
    return c->asked->messages != NULL &&
           json_root(c->asked->messages)->n == n_instruction(c->asked) + 1;
}

bool conversation_drop_oldest(struct conversation *c)
{
    size_t n = c->n_dropped;

    if (n < c->n_turn)
        n++;
    while (n < c->n_turn && c->turns[n].role != CHAT_USER)
        n++;
    if (n >= c->n_turn)
        return false;
    c->n_dropped = n;
    return true;
}

void conversation_drop_all(struct conversation *c)
{
    while (conversation_drop_oldest(c))
        continue;
}
