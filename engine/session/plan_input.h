/*
 * plan_input.h - the numbers of a model and of its options that the plan is made from.
 *
 * Allocation follows the same numbers: what they leave out, the budget does not cover.
 */
#ifndef MEMWALL_ENGINE_SESSION_PLAN_INPUT_H
#define MEMWALL_ENGINE_SESSION_PLAN_INPUT_H

#include "engine/memwall.h"
#include "engine/plan/input.h"
#include "engine/session/model.h"

/* Fill *in for options that options_resolve() has completed, with the factors of the model's
 * anchor if it holds for them (anchors.h).  Returns -1 with *e if the model
 * cannot run with them at any budget. */
int plan_input_of(struct mw_model *m, const struct mw_options *o, struct plan_input *in,
                  struct err *e);

/* The same without the factors of a measurement. */
int plan_input_formula(struct mw_model *m, const struct mw_options *o, struct plan_input *in,
                       struct err *e);

/* Note again whether and how much of the context can go to the folder of the options: inputs that
 * were kept have what was true then. */
void plan_input_kv_folder(struct plan_input *in, const struct mw_options *o);

/* plan_make() for *in, which plan_input_of() filled from these options.  If it is refused, the
 * error proposes a budget that also holds the larger blocks of that budget. */
int plan_of(struct mw_model *m, const struct mw_options *o, const struct plan_input *in,
            struct plan *out, struct err *e);

/* Set l->rate to the names of the weight types of *in, without rates. */
void plan_input_types(const struct plan_input *in, struct mw_limits *l);
/* Enter these limits: the rates of disk and memory, and those of the weight types of *in. */
void plan_input_limits(struct plan_input *in, const struct mw_limits *l);

/* Bytes that the plan counts for the program alone: its files, its heap, and what the caller
 * needs itself. */
uint64_t program_bytes(const struct mw_model *m, uint64_t caller_bytes);

/* How many positions a layer of the KV store keeps in memory; UINT32_MAX: all. */
uint32_t plan_input_keep(const struct mw_model *m, const struct plan *p, uint32_t kv_layer);

#endif
