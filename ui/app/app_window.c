/* The window around the screen: its title, the bell, and messages of the desktop. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "ui/app/app.h"
#include "ui/app/status.h"
#include "ui/term/window.h"
#include "ui/words/clean.h"
#include "ui/words/receipt.h"

#define TITLE_NS ((uint64_t)1000 * 1000 * 1000) /* a new rate is shown no sooner */

/* "answering, 3.41 tok/s - gemma-4-E2B - memwall" */
void app_title(struct app *a)
{
    const struct mw_model_info *info = talk_info(a->talk);
    enum talk_state state = talk_state(a->talk);
    double tps = status_rate(a->talk, &a->sample);
    uint64_t now = clock_ns();
    char text[160], name[60], word[40], rate[24], speed[40] = "";

    if (a->ui.title == UI_OFF) {
        term_set_title(a->term, "");
        return;
    }
    if (a->title_ns != 0 && state == a->title_state && now - a->title_ns < TITLE_NS)
        return;
    a->title_state = state;
    a->title_ns = now;
    clean_line(name, sizeof name, info->name, strlen(info->name));
    if (tps > 0 && (state == TALK_ANSWERING || state == TALK_READY))
        snprintf(speed, sizeof speed, ", %s tok/s", numbers_measured(rate, sizeof rate, tps));
    snprintf(text, sizeof text, "%s%s%s%s - memwall",
             status_state(a->talk, &a->sample, word, sizeof word), speed,
             name[0] != '\0' ? " - " : "", name);
    term_set_title(a->term, text);
}

/* "the answer is ready: 312 tokens, 3.4 tok/s, 71 % disk" */
static void done_text(const struct mw_receipt *r, char *buf, size_t n)
{
    static const char *const ends[] = {
        [MW_DONE_STOP] = "the answer is ready",
        [MW_DONE_LENGTH] = "the answer has reached its limit",
        [MW_DONE_CANCELLED] = "the answer was stopped",
        [MW_DONE_CONTEXT] = "the context is full",
        [MW_DONE_ERROR] = "the answer ended with an error",
    };
    char count[24], rate[80];

    snprintf(buf, n, "%s: %s %s%s, %s", ends[r->done],
             numbers_count(count, sizeof count, r->n_decoded),
             r->is_in_pieces ? "piece" : "token", r->n_decoded == 1 ? "" : "s",
             receipt_short(rate, sizeof rate, r));
}

void app_announce(struct app *a, const struct mw_receipt *r)
{
    bool rings =
        a->ui.bell == UI_BELL_ALWAYS || (a->ui.bell == UI_BELL_UNFOCUSED && !a->has_focus);
    char text[160], bytes[400];

    /* The person who stops an answer knows that it ends.  A queued message is answered next. */
    if (r->done == MW_DONE_CANCELLED || talk_outbox(a->talk)->n_queue > 0)
        return;
    if (rings)
        term_send(a->term, "\a", 1);
    if (a->has_focus)
        return;
    done_text(r, text, sizeof text);
    window_message(bytes, sizeof bytes, window_way(a->ui.notify), "memwall", text,
                   term_is_ascii(a->term));
    term_send(a->term, bytes, strlen(bytes));
}
