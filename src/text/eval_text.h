/*
 * eval_text.h - the perplexity of a text.
 *
 * The ids of the text are cut into windows of the context size (512 without --ctx).  Each
 * window is evaluated on its own.  The model's begin token, if there is one, replaces the first
 * id of a window.  The second half of a window is scored.  perplexity = exp(mean of -ln p); its
 * standard error is the standard error of the mean times the perplexity.  A last piece shorter
 * than a window is left out, unless it is the only one.
 *
 * The text is read, encoded and evaluated window by window, so a text of any size needs the
 * memory of one window.
 */
#ifndef MEMWALL_SRC_TEXT_EVAL_TEXT_H
#define MEMWALL_SRC_TEXT_EVAL_TEXT_H

#include "engine/memwall.h"
#include "src/text/eval_watch.h"
#include "ui/options/options.h"

int eval_text(struct mw_model *m, struct mw_options *engine, const struct options *o,
              struct eval_watch *w, struct err *e);

/* Find the maximum number of tokens per evaluation: the given context, limited to the largest
 * context that fits the budget. */
int eval_max_tokens(struct mw_model *m, const struct mw_options *engine, uint32_t *max,
                    struct err *e);

#endif
