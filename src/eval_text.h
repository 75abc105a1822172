/*
 * eval_text.h - the perplexity of a text, as it is usually measured.
 *
 * The ids of the text are cut into windows of the context's size (512 unless --ctx says
 * otherwise), each evaluated alone; the model's begin token, if there is one, takes the place
 * of a window's first id.  The second half of a window is scored.  perplexity =
 * exp(mean of -ln p), its standard error is that of the mean times the perplexity.  A last
 * piece shorter than a window is left out, unless it is the only one.
 *
 * The text is read, encoded and evaluated window by window: a text of any size takes the
 * memory of one window.
 */
#ifndef MEMWALL_SRC_EVAL_TEXT_H
#define MEMWALL_SRC_EVAL_TEXT_H

#include "engine/memwall.h"
#include "src/eval_watch.h"
#include "src/options.h"

int eval_text(struct mw_model *m, struct mw_options *wish, const struct options *o,
              struct eval_watch *w, struct err *e);

/* The most tokens of one evaluation: those of the context if one was given, and of the
 * largest context that fits the budget. */
int eval_most_tokens(struct mw_model *m, const struct mw_options *wish, uint32_t *most,
                     struct err *e);

#endif
