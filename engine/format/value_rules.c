#include "config.h"

#include "engine/format/value_rules.h"

#include <math.h>

#include "engine/format/arch.h"

bool value_follows(enum value_rule rule, double v, const struct hparams *h)
{
    switch (rule) {
    case RULE_ANY: return true;
    case RULE_OFF: return v == 0;
    case RULE_ONE: return v == 1 || v == 0;
    case RULE_ON: return v != 0;
    case RULE_SCALE:
        return v == 0 || fabs(v - (double)h->attn_scale) <= 1e-4 * (double)h->attn_scale;
    case RULE_SAME:
    case RULE_ACT: return false;
    }
    return false;
}

int value_refuse(const struct hparams *h, const char *shown, struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED,
                   "is %s; memwall's %s models do not use this value, so the answers would be "
                   "wrong",
                   shown, arch_traits(h->arch)->name);
}
