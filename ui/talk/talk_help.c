/* Questions to the guide about memwall's own words are answered from the help texts. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ui/talk/help_answer.h"
#include "ui/talk/talk_internal.h"

#define LOOK_BACK 4 /* earlier questions that one can be about */

/* Only the guide is asked about memwall.  The tour shows how the model itself answers. */
static bool is_asked(const struct talk *t)
{
    return help_is_guide(&t->info) && !t->o->tour && !t->changes.asked.raw;
}

/* Find the answer to text, which may follow up on the questions before. */
static bool find_answer(struct talk *t, const char *text, char answer[HELP_ANSWER_BYTES])
{
    const char *question[LOOK_BACK + 1];
    char *before[LOOK_BACK] = { NULL };
    size_t n = 0;
    bool is_found;

    for (uint64_t back = LOOK_BACK; back > 0; back--) {
        long message = ledger_user(&t->ledger, back);

        before[n] = message < 0 ? NULL : talk_text_of(t, (size_t)message);
        if (before[n] != NULL)
            question[n] = before[n], n++;
    }
    question[n] = text;
    is_found = help_answer(t->o->subcommands, question, n + 1, answer);
    while (n > 0)
        free(before[--n]);
    return is_found;
}

/* The answer is a turn of the chat as any other, and costs no tokens. */
static void show_answer(struct talk *t, const char *answer)
{
    uint32_t id = saving_help(&t->saving, answer);

    ledger_add(&t->ledger, false);
    t->n_unfinished = 0;
    t->held.n = 0;
    t->answer = (struct answer){ .has_text = true };
    t->front.begin(t->front.ctx, false);
    t->front.piece(t->front.ctx, answer, strlen(answer), false);
    t->front.done(t->front.ctx, NULL, true, id);
    if (!t->said_help && !t->o->options->quiet)
        talk_notice(t, "the help answers questions about its words; /retry asks the model");
    t->said_help = true;
    t->front.changed(t->front.ctx);
}

/* Returns the answer to text, to be freed; NULL: it is for the model. */
static char *answer_to(struct talk *t, const char *text)
{
    char *answer = is_asked(t) ? malloc(HELP_ANSWER_BYTES) : NULL;

    if (answer == NULL || find_answer(t, text, answer))
        return answer;
    free(answer);
    return NULL;
}

bool help_knows(struct talk *t, const char *text)
{
    char *answer = t->outbox.n_file > 0 ? NULL : answer_to(t, text);
    bool is_known = answer != NULL;

    free(answer);
    return is_known;
}

bool help_reply(struct talk *t, const struct outbox_message *m, bool from_queue)
{
    char *answer = m->attached.bytes > 0 ? NULL : answer_to(t, m->text);
    struct err ignored = ERR_INIT;

    if (answer == NULL || t->engine->calls->aside(t->engine, &ignored) != 0) {
        free(answer);
        return false;
    }
    messages_add(t, m, from_queue);
    show_answer(t, answer);
    free(answer);
    return true;
}

bool help_was_last(const struct talk *t)
{
    const struct store *s = t->saving.store;
    struct err ignored = ERR_INIT;
    uint32_t item;

    return s != NULL && store_messages(s) > 0 &&
           store_item_of(s, store_messages(s) - 1, &item, &ignored) == 0 &&
           store_item(s, item)->is_help;
}

void help_ask_model(struct talk *t)
{
    size_t n = t->ledger.n - 1;
    char *text = n > 0 ? talk_text_of(t, n - 1) : NULL;
    struct err e = ERR_INIT;

    if (text == NULL)
        err_memory(&e, "the question");
    if (text == NULL || t->engine->calls->rewind(t->engine, n - 1, &e) != 0 ||
        t->engine->calls->send(t->engine, text, strlen(text), 0, &e) != 0) {
        talk_report(t, &e);
    } else {
        ledger_cut(&t->ledger, n);
        saving_rewind(&t->saving, n);
        t->front.rewound(t->front.ctx, n);
        messages_begin_answer(t, false);
    }
    free(text);
}
