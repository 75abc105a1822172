/* The settings that were tried: a table, and the way back to them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/base/numbers.h"
#include "ui/talk/change_sheet.h"
#include "ui/talk/command_list.h"
#include "ui/text/sheet.h"
#include "ui/words/tried.h"

struct choices {
    struct talk *t;
    struct mw_tried list[MW_TRIED_MOST];
    size_t n;
    struct tried_table table;
};

/* The settings in use, as a record has them. */
static struct mw_tried in_use(struct talk *t)
{
    struct mw_options o = talk_options(t)->engine;
    struct mw_sample *s = malloc(sizeof *s);
    struct mw_tried now = { 0 };

    if (s == NULL)
        return now;
    talk_sample(t, s);
    o.memory_bytes = talk_plan(t)->budget_bytes;
    o.n_ctx = talk_plan(t)->n_ctx;
    o.n_thread = (int)s->run.threads;
    mw_tried_of_options(&now, &o);
    free(s);
    return now;
}

static void choose(void *ctx, long number)
{
    const struct choices *c = ctx;
    struct mw_chat_options wanted = *talk_options(c->t);
    struct mw_tried now = in_use(c->t);
    const struct mw_tried *t;
    char what[60], note[120], rate[24], age[32];

    if (number < 0 || (size_t)number >= c->n)
        return;
    t = &c->list[number];
    if (mw_tried_same_settings(t, &now)) {
        talk_notice(c->t, "these settings are in use");
        return;
    }
    mw_tried_to_options(t, &wanted.engine);
    if (t->n_thread == now.n_thread) /* not chosen, perhaps */
        wanted.engine.n_thread = talk_options(c->t)->engine.n_thread;
    tried_settings(what, sizeof what, &c->table, t);
    snprintf(note, sizeof note, "%s tok/s was measured with these settings %s.",
             numbers_measured(rate, sizeof rate, t->tps),
             mw_age_text(age, sizeof age, c->table.now_s - (int64_t)t->measured_s));
    change_propose(c->t, &wanted, what, note);
}

static void add_rows(struct choices *c, struct sheet *s)
{
    struct mw_tried now = in_use(c->t);
    char row[TRIED_LINE];

    sheet_line(s, ROLE_HEADING, "  %s", tried_heading());
    for (size_t i = 0; i < c->n; i++) {
        bool is_now = mw_tried_same_settings(&c->list[i], &now);

        sheet_line(s, is_now ? ROLE_ACCENT : ROLE_TEXT, "%s %s",
                   is_now                  ? ">"
                   : c->list[i].is_session ? "*"
                                           : " ",
                   tried_row(row, sizeof row, &c->table, &c->list[i]));
        sheet_choice(s, (long)i);
    }
}

void run_tried(struct talk *t, const char *args)
{
    struct choices *c = calloc(1, sizeof *c);
    struct sheet *s = sheet_new("Tried settings", "Enter: use these settings   Esc: close");
    char note[256];

    (void)args;
    if (c != NULL)
        c->n = talk_tried(t, c->list);
    if (c == NULL || s == NULL || c->n == 0) {
        talk_error(t,
                   c == NULL || s == NULL
                       ? "not enough memory to show what was tried"
                       : "nothing was measured with this model yet: an answer of more than 8 "
                         "tokens without drafts is");
        sheet_free(s);
        free(c);
        return;
    }
    c->t = t;
    tried_table(&c->table, c->list, c->n, (int64_t)time(NULL));
    sheet_on_enter(s, choose, free, c);
    add_rows(c, s);
    sheet_gap(s);
    snprintf(note, sizeof note, "> in use, * measured since memwall was started. %s %s",
             TRIED_NOTE);
    sheet_text(s, ROLE_DIM, note);
    talk_show(t, s);
}
