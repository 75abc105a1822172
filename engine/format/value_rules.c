#include "config.h"

#include "engine/format/value_rules.h"

#include <math.h>
#include <string.h>

#include "engine/format/arch.h"

static bool number_follows(const struct value_rule_row *r, double v, const struct hparams *h)
{
    switch (r->rule) {
    case RULE_ANY: return true;
    case RULE_OFF: return v == 0;
    case RULE_ONE: return v == 1 || v == 0;
    case RULE_ONE_BY_KIND: return !arch_has(h->arch, TRAIT_ROPE_BY_KIND) || v == 1 || v == 0;
    case RULE_ONE_UNSCALED: return h->rope.scaling == ROPE_YARN || v == 1 || v == 0;
    case RULE_ON: return v != 0;
    case RULE_SIGMOID:
        return h->n_expert == 0 || (v != 0) == (h->router_score == SCORE_SIGMOID);
    case RULE_SCALE:
        return v == 0 || fabs(v - (double)h->attn_scale) <= 1e-4 * (double)h->attn_scale;
    case RULE_SAME:
    case RULE_ACT: return false;
    }
    return false;
}

static bool text_follows(const struct value_rule_row *r, const char *text,
                         const struct hparams *h)
{
    if (r->rule == RULE_ACT)
        return arch_activates(h->arch, text);
    return text[0] == '\0' || strcmp(text, "none") == 0 ||
           (r->rule != RULE_SAME && r->other != NULL && strcmp(text, r->other) == 0);
}

static bool list_follows(const struct value_rule_row *r, const struct stated_value *v,
                         const struct hparams *h)
{
    for (uint64_t i = 0; i < v->n; i++) {
        double x;

        if (v->element == NULL || !v->element(v->ctx, i, &x) || !number_follows(r, x, h))
            return false;
    }
    return true;
}

static bool follows(const struct value_rule_row *r, const struct stated_value *v,
                    const struct hparams *h)
{
    if (r->rule == RULE_ANY || (r->read_if & h->arch->traits) != 0)
        return true;
    switch (v->kind) {
    case STATED_NOTHING: return true;
    case STATED_NUMBER:
        return r->rule == RULE_SAME ? v->is_same : number_follows(r, v->number, h);
    case STATED_TEXT: return text_follows(r, v->text, h);
    case STATED_LIST: return list_follows(r, v, h);
    case STATED_BAD: break;
    }
    return false;
}

int value_check(const struct value_rule_row *r, const struct stated_value *v,
                const struct hparams *h, struct err *e)
{
    if (follows(r, v, h))
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
                   "is %s; memwall's %s models do not use this value, so the answers would be "
                   "wrong",
                   v->shown[0] != '\0' ? v->shown : "set", h->arch->name);
}
