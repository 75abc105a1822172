/* Why nothing drafts for an answer, in words (api/plan.h). */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/memwall.h"
#include "engine/session/draft_model.h"
#include "engine/session/model.h"
#include "engine/session/options.h"

/* Returns a path without its folders. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* "the model in small.gguf does not draft", "the draft head does not draft" */
static void subject(const struct mw_options *o, char *buf, size_t n)
{
    if (o->draft == MW_DRAFT_FILE)
        snprintf(buf, n, "the model in %.80s does not draft", file_name(o->draft_file));
    else
        snprintf(buf, n, "%s", o->draft == MW_DRAFT_SELF ? "the model does not draft for itself"
                                                         : "the draft head does not draft");
}

/* The model's own file as the drafter: this is the only cause then.  More memory would hold the
 * weights themselves. */
static bool same_model(const struct mw_model *m, const struct mw_options *o, const struct plan *p,
                       char *buf, size_t n)
{
    bool is_cause = p->no_drafter == MW_DRAFTER_NO_ROOM || p->no_drafter == MW_DRAFTER_SLOWER ||
                    p->no_drafter == MW_DRAFTER_ALL_PINNED;

    if (o->draft != MW_DRAFT_FILE || !is_cause || m == NULL ||
        !draft_model_is_same(m, o->draft_file))
        return false;
    snprintf(buf, n, "the model in %.80s is this one itself and does not draft: its drafts would "
                     "take as long as tokens; --draft self drafts with smaller copies",
             file_name(o->draft_file));
    return true;
}

/* A head that nobody asked for: the plan does not even weigh one that is too large. */
static bool unused_head(const struct mw_model *m, const struct mw_options *o, char *buf, size_t n)
{
    const struct err *why = m != NULL ? mw_model_no_head(m) : NULL;
    struct mw_head_info head;
    char text[200];

    if (o->draft != MW_DRAFT_AUTO || m == NULL)
        return false;
    if (why != NULL) {
        err_text(why, text, sizeof text);
        snprintf(buf, n, "the draft head in the model's files is not used: %s", text);
    } else if (mw_model_head(m, &head) && options_head(m, o) == HEAD_UNUSED) {
        snprintf(buf, n, "the draft head is larger than an eighth of the model, so it drafts only "
                         "with --draft mtp");
    }
    return buf[0] != '\0';
}

static void reason(const struct plan *p, char *buf, size_t n)
{
    static const char *const texts[] = {
        [MW_DRAFTER_NO_ROOM] = "the budget has no memory for that",
        [MW_DRAFTER_ALL_PINNED] = "all weights are in memory, so a draft would take as long as a "
                                  "token",
        [MW_DRAFTER_KV_DISK] = "keys and values are on the disk, so a draft would take as long as "
                               "a token",
        [MW_DRAFTER_ONE_TOKEN] = "a chunk of one token has no place for drafts",
        [MW_DRAFTER_CLOSED] = "it gained too little; a later answer tries it again",
    };
    char with[24], without[24];

    if (p->no_drafter != MW_DRAFTER_SLOWER) {
        snprintf(buf, n, "%s", texts[p->no_drafter]);
        return;
    }
    snprintf(buf, n, "if %.0f %% of its drafts were right, answers would make %s tok/s, and "
                     "without it they make %s",
             100 * p->acceptance,
             numbers_predicted(with, sizeof with, p->drafted_tps, p->is_doubtful),
             numbers_predicted(without, sizeof without, p->undrafted_tps, p->is_doubtful));
}

char *mw_plan_no_drafter(const struct mw_model *m, const struct mw_options *o,
                         const struct plan *p, char *buf, size_t n)
{
    char who[180], why[160];

    buf[0] = '\0';
    if (o->draft == MW_DRAFT_OFF)
        return buf;
    if (p->no_drafter == MW_DRAFTER_IS_USED && unused_head(m, o, buf, n))
        return buf;
    if (same_model(m, o, p, buf, n))
        return buf;
    if (p->no_drafter != MW_DRAFTER_IS_USED) {
        subject(o, who, sizeof who);
        reason(p, why, sizeof why);
        snprintf(buf, n, "%s: %s", who, why);
    } else if (o->draft == MW_DRAFT_NGRAM && p->n_draft == 0) {
        snprintf(buf, n, "nothing is drafted: its scores would take more than a hundredth of the "
                         "weights, or do not fit");
    }
    return buf;
}
