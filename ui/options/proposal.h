/*
 * proposal.h - other options for a model beside those in force, in words.
 *
 *                        now       then
 *     budget         600 MiB   1.00 GiB  +424 MiB
 *     tokens/s           2.1       ~3.4  +62 %, faster
 *
 * A chat shows these lines in a sheet, and a server sends them to the chat in front of it.
 */
#ifndef MEMWALL_UI_OPTIONS_PROPOSAL_H
#define MEMWALL_UI_OPTIONS_PROPOSAL_H

#include "engine/memwall.h"
#include "ui/look/role.h"
#include "ui/options/options.h"

enum proposal_how { PROPOSAL_LINE, PROPOSAL_MORE /* of the line before */, PROPOSAL_PARAGRAPH };

struct proposal_out {
    void (*add)(void *ctx, enum proposal_how how, enum ui_role role, const char *text);
    void *ctx;
};

/* Diagnoses, limits and anchor are zeroed if they are not known. */
struct proposal_facts {
    const struct mw_model *m;       /* NULL: not known */
    const struct mw_options *a, *b; /* in force, and proposed */
    const struct plan *now, *then;  /* of them */
    struct mw_diagnosis answers_now, answers_then;
    struct mw_limits limits;
    struct plan_anchor anchor;
};

/* Budget, context and the other options that differ, and the speed. */
void proposal_settings(const struct proposal_facts *f, const struct proposal_out *to);
/* The items of the plan whose printed sizes differ, and the total. */
void proposal_memory(const struct proposal_facts *f, const struct proposal_out *to);
/* Warnings about the proposed options themselves: a context longer than the model was trained
 * for, mapped weights, drafts that they do not give. */
void proposal_warnings(const struct proposal_facts *f, uint32_t n_ctx_train,
                       const struct proposal_out *to);
/* The limits of the machine that predictions use, and a limit that the user set for the disk
 * (bytes per second; 0: none). */
void proposal_limits(const struct mw_limits *l, const struct plan_anchor *anchor,
                     uint64_t disk_rate, const struct proposal_out *to);

/* "+12.0 MiB", "-1.20 GiB", ""; returns buf. */
char *proposal_difference(char *buf, size_t n, uint64_t now, uint64_t then);

/* How to ask what fits; both return false if that is not known. */
struct proposal_fit {
    bool (*fit)(void *ctx, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx);
    bool (*fits)(void *ctx, const struct mw_options *o);
    void *ctx;
};
/*
 * Say which sizes would fit where `wanted` does not, instead of the error of the planner, which
 * names the budget that its plan needs: buffers grow with the budget, so that budget may be
 * refused as well.  budget: of the plan that was refused.  Returns false if nothing is known.
 */
bool proposal_why_not(const struct mw_options *wanted, uint64_t budget,
                      const struct proposal_fit *ask, char *buf, size_t n);

/* Options that changed beside budget and context: ", kv q8_0, io buffered, threads 2". */
void proposal_changed(char *buf, size_t n, const struct mw_options *was,
                      const struct mw_options *is);

#endif
