/*
 * pull_nothing.h - the reason why a repository has no model that can be fetched.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_NOTHING_H
#define MEMWALL_ENGINE_HUB_PULL_NOTHING_H

#include "engine/base/err.h"
#include "engine/hub/pull_list.h"
#include "engine/hub/pull_variant.h"

/*
 * Fill *e with what the repository `name`, which has no variants, holds instead of a model, and
 * what to do.  A model with a missing file comes first: the sentence names the file.
 * Returns -1.
 */
int pull_nothing(const char *name, const struct pull_list *l, const struct pull_variants *c,
                 struct err *e);

#endif
