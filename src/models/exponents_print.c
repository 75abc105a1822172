/* See exponents_print.h. */
#include "config.h"

#include "src/models/exponents_print.h"

#include <inttypes.h>
#include <stdbool.h>

#include "engine/base/json_write.h"

#define BAR 50

static const struct {
    const char *name;
    int n_exponent, bias, bits;
} types[2] = { { "BF16", 256, 127, 12 }, { "F16", 32, 15, 14 } };

static double share(uint64_t n, const struct mw_exponents *c)
{
    return c->n_weight > 0 ? (double)n / (double)c->n_weight : 0;
}

static void print_type(FILE *to, int type, const struct mw_exponents *c)
{
    uint64_t most = 1;

    fprintf(to, "%s: %" PRIu64 " weights of %u matrices\n", types[type].name, c->n_weight,
            c->n_tensor);
    for (int e = 0; e < types[type].n_exponent; e++)
        most = c->count[e] > most ? c->count[e] : most;
    for (int e = 0; e < types[type].n_exponent; e++) {
        if (c->count[e] == 0)
            continue;
        fprintf(to, "  %3d  2^%-5d %10.6f %%", e, e - types[type].bias,
                100 * share(c->count[e], c));
        for (uint64_t i = 0; i < BAR * c->count[e] / most; i++)
            fputs(i == 0 ? "  #" : "#", to);
        fputc('\n', to);
    }
    fprintf(to,
            "%.5f %% need a patch in %d bits.  Packed, they take %.2f %% of their %" PRIu64
            " bytes.\n",
            100 * share(c->n_escape, c), types[type].bits, 100 * c->packed_share, c->bytes);
    if (type == 1)
        fputs("memwall does not pack F16: this would save too little.\n", to);
}

void exponents_print(FILE *to, const struct mw_exponents counts[2])
{
    bool any = false;

    for (int type = 0; type < 2; type++)
        if (counts[type].n_weight > 0) {
            print_type(to, type, &counts[type]);
            any = true;
        }
    if (!any)
        fputs("The model has no BF16 or F16 matrices.\n", to);
}

void exponents_print_json(FILE *to, const struct mw_exponents counts[2])
{
    struct json j;

    json_start_stream(&j, to);
    json_object(&j, NULL);
    for (int type = 0; type < 2; type++) {
        const struct mw_exponents *c = &counts[type];

        json_object(&j, type == 0 ? "bf16" : "f16");
        json_u64(&j, "n_tensor", c->n_tensor);
        json_u64(&j, "bytes", c->bytes);
        json_u64(&j, "n_weight", c->n_weight);
        json_u64(&j, "n_escape", c->n_escape);
        json_double(&j, "packed_share", c->packed_share, 6);
        json_array(&j, "exponents");
        for (int e = 0; e < types[type].n_exponent; e++)
            json_u64(&j, NULL, c->count[e]);
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
    json_line(&j);
}
