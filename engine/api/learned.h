/*
 * learned.h - what is known of a model from measurements and from its own work: limits, the anchor
 * of predictions, and tried settings.
 *
 * A program keeps them between runs (limits/store.h) and sets them when it opens the model again.
 */
#ifndef MEMWALL_ENGINE_API_LEARNED_H
#define MEMWALL_ENGINE_API_LEARNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/api/options.h"
#include "engine/limits/limits.h"
#include "engine/limits/tried.h"
#include "engine/plan/anchor.h"
#include "engine/plan/table.h"

/* Use these limits in later plans and sessions of m. */
void mw_model_set_limits(struct mw_model *m, const struct mw_limits *limits);
/* Copy the limits in use, which the work of a session corrects.  Any thread. */
void mw_model_limits(const struct mw_model *m, struct mw_limits *out);
/* Call fn when m is closed: with the limits if work corrected them, else with NULL, with the
 * anchor of m, and with its tried settings (both below). */
typedef void mw_limits_keep_fn(void *ctx, const struct mw_limits *corrected,
                               const struct plan_anchor *anchor, const struct mw_tried *tried,
                               size_t n_tried);
void mw_model_keep_limits(struct mw_model *m, mw_limits_keep_fn *fn, void *ctx);

/*
 * The anchor is a measurement: the newest tokens of an answer (plan/anchor.h).  Predictions for m
 * begin there, as long as threads, kernels, I/O and `exact` are the same.  A session measures it
 * while it answers; measured_s 0: nothing was measured.  A program can keep it with the model
 * and set it in a later run, which leaves out the time that other programs took if that was
 * more than ten minutes ago.  Any thread.
 */
void mw_model_anchor(const struct mw_model *m, struct plan_anchor *out);
void mw_model_set_anchor(struct mw_model *m, const struct plan_anchor *a);

/*
 * The settings with which m answered, the newest first (limits/tried.h).  A session adds the
 * settings of an answer once it has MW_TRIED_TOKENS tokens after the first one.  Tokens before
 * the last change of the settings do not count, nor do those before all weights were pinned.  A
 * program can keep them with the model and set them in a later run.  Any thread.
 */
size_t mw_model_tried(const struct mw_model *m, struct mw_tried *list); /* [MW_TRIED_MOST] */
void mw_model_set_tried(struct mw_model *m, const struct mw_tried *list, size_t n);
/* Set the largest memory of the last answer, which had the plan p. */
void mw_model_tried_peak(struct mw_model *m, const struct plan *p, uint64_t bytes);
/* Copy the settings of options to a record, and back; the other options stay. */
void mw_tried_of_options(struct mw_tried *t, const struct mw_options *o);
void mw_tried_to_options(const struct mw_tried *t, struct mw_options *o);

#endif
