/*
 * greedy.c - a complete program on engine/memwall.h: reads ids, prints the ids that follow.
 *
 *     greedy MODEL BUDGET N ID...
 *
 * A session needs a model, options and ids; the budget is the only option that must be set.
 * At the end, the counters are printed to standard error.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/memwall.h"

static int fail(const struct err *e)
{
    char text[600];

    err_text(e, text, sizeof text);
    fprintf(stderr, "greedy: %s\n", text);
    return 1;
}

static uint32_t greatest(const float *x, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

int main(int argc, char **argv)
{
    static struct mw_sample sample;
    struct err e = ERR_INIT;
    struct mw_options o;
    struct mw_model_info info;
    struct mw_model *m;
    struct mw_session *s;
    uint32_t *ids = calloc((size_t)argc, sizeof *ids);
    int n_ids = argc - 4, n = argc > 4 ? atoi(argv[3]) : 0;

    if (ids == NULL || n < 1) {
        fprintf(stderr, "usage: greedy MODEL BUDGET N ID...\n");
        return 2;
    }
    for (int i = 0; i < n_ids; i++)
        ids[i] = (uint32_t)strtoul(argv[4 + i], NULL, 10);
    mw_options_default(&o);
    if (units_parse_size(argv[2], 0, &o.memory_bytes, &e) != 0 ||
        mw_model_open(&m, argv[1], &e) != 0 || mw_session_open(&s, m, &o, &e) != 0 ||
        mw_session_eval(s, ids, (size_t)n_ids, NULL, NULL, &e) != 0)
        return fail(&e);
    mw_model_info(m, &info);
    for (int i = 0; i < n; i++) {
        uint32_t id = greatest(mw_session_logits(s), info.n_vocab);

        printf("%u%c", id, i + 1 < n ? ' ' : '\n');
        fflush(stdout);
        if (mw_session_eval(s, &id, 1, NULL, NULL, &e) != 0)
            return fail(&e);
        mw_session_sample(s, &sample);
        fprintf(stderr, "pass %.3f s, waited %.3f s, read %.3f GB\n",
                (double)sample.pass.wall_ns / 1e9, (double)sample.pass.stall_ns / 1e9,
                (double)sample.pass.bytes_pass / 1e9);
    }
    mw_session_close(s);
    mw_model_close(m);
    free(ids);
    return 0;
}
