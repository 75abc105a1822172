/* See products_print.h. */
#include "config.h"

#include "src/machine/products_print.h"

#include "engine/base/json_write.h"

static const uint32_t columns[] = { 1, 4, 16, 64, 256 };
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static double rate(const struct mw_product *p, bool is_blas)
{
    return (is_blas ? p->blas_flops_s : p->kernels_flops_s) * 1e-9;
}

static void print_line(FILE *to, const struct mw_products *table, uint32_t i, bool is_blas)
{
    fprintf(to, "%-8s %-9s", is_blas ? "" : table[0].product[i].type,
            is_blas ? "openblas" : "kernels");
    for (int c = 0; c < N_COLUMNS; c++)
        fprintf(to, " %8.3g", rate(&table[c].product[i], is_blas));
    fputc('\n', to);
}

static bool was_compared(const struct mw_choice *c)
{
    return c->way[c->chosen].bytes_s > 0;
}

static void print_choice(FILE *to, const struct mw_choice *c)
{
    if (!was_compared(c)) {
        fprintf(to, "%s: %s (not compared: the machine is busy)\n", c->label,
                c->way[c->chosen].text);
        return;
    }
    fprintf(to, "\n%s, GB/s of %s\n", c->label, c->type);
    for (uint32_t i = 0; i < c->n; i++)
        fprintf(to, "%8.1f  %s%s\n", c->way[i].bytes_s * 1e-9, c->way[i].text,
                i == c->chosen    ? " (in use)"
                : i == c->better ? " (clearly faster now)"
                                 : "");
}

static void print_table(FILE *to, const struct mw_products *table, const struct mw_choice *choices,
                        const char *choice)
{
    fprintf(to,
            "kernels %s%s, %s\n\n"
            "Billions of operations a second, one thread, by the number of tokens together:\n\n"
            "%-8s %-9s",
            table[0].kernels, table[0].exact ? " (exact)" : "",
            table[0].blas[0] != '\0' ? table[0].blas : "no openblas", "type", "columns");
    for (int c = 0; c < N_COLUMNS; c++)
        fprintf(to, " %8u", columns[c]);
    fputc('\n', to);
    for (uint32_t i = 0; i < table[0].n; i++) {
        print_line(to, table, i, false);
        if (table[0].blas[0] != '\0')
            print_line(to, table, i, true);
    }
    fprintf(to, "\nproducts by %s\n", choice);
    for (int i = 0; i < MW_WAY_CHOICES; i++)
        if (choices[i].n > 0)
            print_choice(to, &choices[i]);
    if (mw_isa_denied() != NULL)
        fprintf(to, "%s\n", mw_isa_denied());
}

static void json_rates(struct json *j, const struct mw_products *table, uint32_t i,
                       bool is_blas)
{
    json_array(j, is_blas ? "openblas_gflops" : "kernels_gflops");
    for (int c = 0; c < N_COLUMNS; c++)
        json_double(j, NULL, rate(&table[c].product[i], is_blas), 3);
    json_end(j);
}

static void json_choice(struct json *j, const struct mw_choice *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        json_object(j, NULL);
        json_string(j, "choice", c->key);
        json_string(j, "type", c->type);
        json_string(j, "way", c->way[i].text);
        if (was_compared(c))
            json_double(j, "bytes_s", c->way[i].bytes_s, 3);
        else
            json_null(j, "bytes_s");
        json_bool(j, "in_use", i == c->chosen);
        json_end(j);
    }
}

static void print_json(FILE *to, const struct mw_products *table, const struct mw_choice *choices,
                       const char *choice)
{
    struct json j;

    json_start_stream(&j, to);
    json_object(&j, NULL);
    json_string(&j, "kernels", table[0].kernels);
    json_bool(&j, "exact", table[0].exact);
    json_string(&j, "openblas", table[0].blas);
    json_string(&j, "products", choice);
    json_array(&j, "ways");
    for (int i = 0; i < MW_WAY_CHOICES; i++)
        json_choice(&j, &choices[i]);
    json_end(&j);
    if (mw_isa_denied() != NULL)
        json_string(&j, "denied", mw_isa_denied());
    json_array(&j, "columns");
    for (int c = 0; c < N_COLUMNS; c++)
        json_u64(&j, NULL, columns[c]);
    json_end(&j);
    json_array(&j, "types");
    for (uint32_t i = 0; i < table[0].n; i++) {
        json_object(&j, NULL);
        json_string(&j, "type", table[0].product[i].type);
        json_rates(&j, table, i, false);
        json_rates(&j, table, i, true);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    json_line(&j);
}

int products_print(FILE *to, const struct mw_model *m, const struct mw_options *o, bool as_json,
                   struct err *e)
{
    struct mw_products table[N_COLUMNS];
    struct mw_choice choices[MW_WAY_CHOICES];
    char choice[MW_PRODUCTS_TEXT];

    for (int c = 0; c < N_COLUMNS; c++)
        if (mw_products_measure(m, o, columns[c], &table[c], e) != 0)
            return -1;
    if (mw_ways_compare(o, choices, e) != 0)
        return -1;
    mw_products_text(m, o, choice, sizeof choice);
    (as_json ? print_json : print_table)(to, table, choices, choice);
    return 0;
}
