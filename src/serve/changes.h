/*
 * changes.h - settings of the model that clients see and change: /memwall/settings.
 *
 *     GET   the values in force
 *     POST  {"memory":"2G"} changes them; with "preview":true, say only what it would change
 *
 * Names and values are those of the options, and the texts are those of a chat that has the model
 * in its own process.
 */
#ifndef MEMWALL_SRC_SERVE_CHANGES_H
#define MEMWALL_SRC_SERVE_CHANGES_H

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/* The model, and the settings in force with their plan and a sample. */
struct changes_now {
    struct mw_model *m;
    struct mw_chat *chat;
    const struct mw_options *engine;
    const struct plan *plan;
    const struct mw_sample *sample;
};

/* A request for other settings. */
struct changes_wish {
    struct mw_options engine;
    bool is_preview;
    char first[40]; /* the name of one of them, of a size if there is one */
    bool has_size;
    char note[320]; /* a sentence about a budget that was lowered, or "" */
};

/* Read a request.  -1 with *e, which names the field. */
int changes_read(struct changes_wish *out, const struct mw_options *now, const char *body,
                 size_t len, struct err *e);
/* Plan it.  -1 with *e, which says what would fit. */
int changes_plan(const struct changes_wish *w, const struct changes_now *now, struct plan *then,
                 struct err *e);

void changes_write_values(const struct changes_now *now, bool is_allowed, struct json *out);
void changes_write_proposal(const struct changes_wish *w, const struct changes_now *now,
                            const struct plan *then, struct json *out);
/* was: the settings before those in force. */
void changes_write_applied(const struct mw_options *was, const struct changes_now *now,
                           struct json *out);

#endif
