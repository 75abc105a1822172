/*
 * state.h - what widgets draw from: the last sample, its rates, and histories.
 *
 * Histories are rings of fixed size.  That of tokens has one entry a token, so a curve of
 * it shows every token whatever the refresh rate; those of seconds have one a second.  A
 * gap (NaN) stands where nothing was measured.
 */
#ifndef MEMWALL_UI_DASH_STATE_H
#define MEMWALL_UI_DASH_STATE_H

#include <stdint.h>

#include "ui/dash/dash.h"

#define DASH_TOKENS       512
#define DASH_SECONDS      512
#define DASH_LAYER_PASSES 48
#define DASH_KV_POINTS    128

/* value[(first + i) % size], oldest first. */
struct past {
    float *value;
    uint32_t size, first, n;
};

float past_at(const struct past *h, uint32_t i);     /* i < n, oldest first */
float past_max(const struct past *h, uint32_t last); /* of the newest `last`; 0: none */

struct dash {
    enum ui_graph graph;
    uint32_t n_predict;
    int cursor; /* layer inspected, -1: none */

    struct mw_sample now;
    struct mw_rates rates;
    bool has_sample;

    struct past tps;         /* one a token: tokens a second */
    struct past stall_share; /* one a token */
    struct past read_rate;   /* one a second: bytes a second */
    struct past model_cached;
    float tps_value[DASH_TOKENS], stall_value[DASH_TOKENS], read_value[DASH_SECONDS],
        cached_value[DASH_SECONDS];
    double fastest_read;  /* bytes a second, over a few passes */
    uint64_t n_token;     /* whose history is written */
    uint64_t token_ns;    /* when the last of them was there */
    uint64_t second_ns;   /* when the last second was written */
    uint64_t second_read; /* bytes_read then */

    /* Since the question: for figures a token. */
    uint64_t answer_ns, answer_majflt, answer_refaults;

    /* Bytes of keys and values when the context held point / DASH_KV_POINTS of its
     * capacity; NaN: not seen. */
    float kv_point[DASH_KV_POINTS + 1];
    uint64_t kv_capacity;

    /* Milliseconds of each layer in its last passes. */
    struct past layer[MW_MAX_LAYER + 1];
    float layer_value[MW_MAX_LAYER + 1][DASH_LAYER_PASSES];
    uint64_t layer_passes[MW_MAX_LAYER + 1];
    struct mw_sample_layer layer_last[MW_MAX_LAYER + 1]; /* when its last pass was over */
    double reads_in_flight; /* on the average of the last passes, at least 1; 0: unknown */
};

/* The index of the layer that took longest in the last pass, head left out; -1: none ran. */
int dash_slowest(const struct dash *d);
/* Milliseconds it stalled and computed. */
double layer_ms(const struct mw_sample_layer *l);

/* What the kernel says the process takes, and by which of its figures it says so. */
struct dash_total {
    struct mw_os_value bytes;
    bool is_charge; /* else what is known of the process alone */
    uint64_t used;  /* the sum of all rows, and of the model's pages */
    uint64_t model; /* of that: the model's pages in the page cache */
    int64_t other;  /* bytes - used; 0 if unknown */
};
void dash_total(const struct dash *d, struct dash_total *out);

#endif
