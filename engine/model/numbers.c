/*
 * Damaged weights give values that are infinite or not a number.  They stay in the residual
 * stream until its end, so only the input of the head and the logits are checked.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

/* Two floats at a time: adding 1 to an exponent whose bits are all set carries into the bit of
 * the sign. */
static bool are_finite(const float *x, size_t n)
{
    const uint64_t size = 0x7fffffff7fffffff, one = 0x0080000000800000;
    uint64_t found = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        uint64_t pair[4];

        memcpy(pair, x + i, sizeof pair);
        found |= ((pair[0] & size) + one) | ((pair[1] & size) + one);
        found |= ((pair[2] & size) + one) | ((pair[3] & size) + one);
    }
    for (; i < n; i++)
        found |= isfinite(x[i]) ? 0 : ~size;
    return (found & ~size) == 0;
}

/* The first pass that fails has the token whose logits are asked for; one that is repeated to
 * find the source meets the values earlier. */
int forward_check_numbers(struct forward *f, const float *rows, size_t n, const char *source,
                          struct err *e)
{
    for (uint32_t c = 0; c < f->n_col; c++) {
        bool is_repeated = f->is_damaged;

        if (are_finite(rows + c * n, n))
            continue;
        if (!is_repeated)
            f->damaged_pos = f->pos[c];
        f->is_damaged = true;
        err_set(e, ERR_FORMAT,
                "the model's logits are not numbers after %u token%s%s%s; the file may be "
                "damaged",
                f->damaged_pos + 1, f->damaged_pos == 0 ? "" : "s",
                is_repeated ? ", starting in " : "", is_repeated ? source : "");
        return err_at(e, f->p.desc->catalogue->path, ERR_NO_OFFSET, NULL);
    }
    return 0;
}
