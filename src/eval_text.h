/*
 * eval_text.h - the perplexity of a text, as it is usually measured.
 *
 * The ids of the whole text are cut into windows of the context's size (512 unless --ctx
 * says otherwise), each evaluated alone; where the model has a begin token it takes the
 * place of a window's first id.  Scored are the ids of the second half of a window, which all
 * have at least half a window before them.  perplexity = exp(mean of -ln p), its standard error
 * is that of the mean times the perplexity.  A last piece shorter than a window is left out,
 * unless it is the only one.
 */
#ifndef MEMWALL_SRC_EVAL_TEXT_H
#define MEMWALL_SRC_EVAL_TEXT_H

#include "engine/memwall.h"
#include "src/eval_watch.h"
#include "src/options.h"

int eval_text(struct mw_model *m, struct mw_options *wish, const struct options *o,
              struct eval_watch *w, struct err *e);

#endif
