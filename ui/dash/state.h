/*
 * state.h - the data of widgets: the last sample, its rates, and histories.
 *
 * Histories are rings of fixed size.  Histories of tokens have one entry per token, so their
 * curves show every token at any refresh rate; the others have one entry per second.  A gap
 * (NaN) means that nothing was measured.
 */
#ifndef MEMWALL_UI_DASH_STATE_H
#define MEMWALL_UI_DASH_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/dash/panels.h"
#include "ui/options/appearance.h"

#define DASH_TOKENS       512
#define DASH_SECONDS      512
#define DASH_LAYER_PASSES 48
#define DASH_KV_POINTS    128

/* value[(first + i) % size], oldest first. */
struct past {
    float *value;
    uint32_t size, first, n;
};

float past_at(const struct past *h, uint32_t i); /* i < n, oldest first */
float past_max(const struct past *h,
               uint32_t last); /* of the newest `last` values; 0: no values */

struct dash {
    enum ui_graph graph;
    uint32_t n_predict;
    bool has_keys; /* F10 runs the advised command */
    int cursor;      /* inspected layer, -1: none */
    struct panels panels;

    /* Figures of a server that has the model, which take the place of the panels. */
    bool has_server;
    struct mw_server_figures server;
    struct mw_model_info server_model;
    struct past piece_rate;         /* per second: pieces of an answer per second */
    float piece_value[DASH_SECONDS];
    uint64_t piece_ns, piece_n;     /* of the last entry */

    struct mw_wall wall;
    bool is_wall_unknown; /* nobody predicts it */
    enum mw_wall_axis wall_axis;
    uint64_t wall_at[MW_WALL_AXES]; /* of the cursor; 0: none */

    struct mw_sample now;
    struct mw_rates rates;
    bool has_sample;

    struct past tps;         /* per token: tokens per second */
    struct past stall_share; /* per token */
    struct past read_rate;   /* per second: bytes per second */
    struct past model_cached;
    struct past memory; /* per second: bytes of dash_total() */
    float tps_value[DASH_TOKENS], stall_value[DASH_TOKENS], read_value[DASH_SECONDS],
        cached_value[DASH_SECONDS], memory_value[DASH_SECONDS];
    double fastest_read;  /* bytes per second, over a few passes */
    uint64_t n_token;     /* tokens in the histories */
    uint64_t token_ns;    /* time of the last one */
    uint32_t group_n;     /* tokens of the newest pass; 0: none, or its length is unknown */
    uint64_t group_ns;    /* the time from the pass before it */
    uint64_t second_ns;   /* time of the last entry per second */
    uint64_t second_read; /* bytes_read at that time */

    /* At the start of the answer, for figures per token. */
    uint64_t answer_ns, answer_majflt, answer_refaults;

    /* KV bytes when the context was at point / DASH_KV_POINTS of its capacity; NaN:
     * unknown. */
    float kv_point[DASH_KV_POINTS + 1];
    uint64_t kv_capacity;

    /* Milliseconds of each layer in recent passes. */
    struct past layer[MW_MAX_LAYER + 1];
    float layer_value[MW_MAX_LAYER + 1][DASH_LAYER_PASSES];
    uint64_t layer_passes[MW_MAX_LAYER + 1];
    /* Milliseconds that each layer waited for the disk, by token: token i is at
     * i % DASH_LAYER_PASSES.  Tokens between two samples count as one. */
    float wait_value[MW_MAX_LAYER + 1][DASH_LAYER_PASSES];
    uint64_t n_wait, wait_token; /* tokens so far; mw_sample.n_token of the newest one */
    /* Those shown: at the end of a pass.  read_ns is elapsed time: the sum over all reads is
     * longer, since several are in flight. */
    struct mw_sample_layer layer_last[MW_MAX_LAYER + 1];
    uint64_t layer_ns[MW_MAX_LAYER + 1]; /* when they were taken */
    int slowest;                         /* of those shown; -1: none */
    double layers_top_ms;                /* the time of a full bar; the head may be longer */
    double reads_in_flight;              /* average of recent passes, at least 1; 0: unknown */
};

/* graph must not be UI_GRAPH_AUTO.  Returns NULL with *e (ERR_MEMORY) on failure. */
struct dash *dash_new(enum ui_graph graph, struct err *e);
void dash_free(struct dash *d);

/* Add a sample; the histories keep earlier tokens and seconds.  Samples come in the order of
 * their time; a sample from an earlier time (another recording) clears the histories. */
void dash_push(struct dash *d, const struct mw_sample *s);

/* Show what a server reports about itself, of this model, in place of the panels; NULL: the
 * panels. */
void dash_set_server(struct dash *d, const struct mw_server_figures *f,
                     const struct mw_model_info *m);
bool dash_has_server(const struct dash *d);

/* Set the maximum number of tokens of the current answer, for the time left; 0: until the
 * context is full. */
void dash_set_cap(struct dash *d, uint32_t n_predict);
/* Name the command that F10 runs, "" for none. */
void dash_set_keys(struct dash *d, bool has_keys);

/* Move the cursor that selects the layer to inspect; it wraps around. */
void dash_move_cursor(struct dash *d, int by);
void dash_set_cursor(struct dash *d, int layer);
int dash_cursor(const struct dash *d);

/* Show this wall, which is copied; NULL: it is not known yet.  The cursor stays where it is. */
void dash_set_wall(struct dash *d, const struct mw_wall *w);
/* Say that it will not be known. */
void dash_set_wall_unknown(struct dash *d);
bool dash_wall_is_unknown(const struct dash *d);
/* Move the cursor of the wall by some points, from the settings in use if there is none. */
void dash_wall_move(struct dash *d, int by);
/* Show the wall over the context instead of the budget, or the other way round. */
void dash_wall_turn(struct dash *d);
/* Remove its cursors. */
void dash_wall_leave(struct dash *d);
/* The value at the cursor of this axis, and a cursor that goes back there.  0: no cursor. */
uint64_t dash_wall_at(const struct dash *d);
void dash_wall_go(struct dash *d, uint64_t at);
enum mw_wall_axis dash_wall_axis(const struct dash *d);
/* Write the setting at the cursor, "memory 1152M"; "" for those in use.  Returns buf. */
char *dash_wall_setting(const struct dash *d, char *buf, size_t n);

/* Returns the panels of the dashboard, to change them. */
struct panels *dash_panels(struct dash *d);

/* Returns the slowest layer of the last pass, without the head; -1 if none ran.  It stays the
 * same while no other one is a tenth slower, so that the mark does not jump about. */
int dash_slowest(const struct dash *d);
/* Returns the milliseconds of its stalls and computation. */
double layer_ms(const struct mw_sample_layer *l);
/* Returns the same, or those of its reads if they took longer. */
double layer_longest_ms(const struct mw_sample_layer *l);

/* Returns the bytes of all KV items, in use or planned. */
uint64_t kv_bytes(const uint64_t row[MW_PLAN_ROWS]);

/* Returns the memory of the process according to the kernel, without pages that the budget does
 * not cover (mw_memory() of rates.h). */
struct mw_os_value dash_memory(const struct mw_sample *s);

/* The same, and the kind of figure. */
struct dash_total {
    struct mw_os_value bytes;
    bool is_charge; /* the charge of the cgroup; else memory of the process */
    uint64_t used;  /* sum of all plan items and of the model's cached pages */
    uint64_t model; /* thereof the model's pages in the page cache */
    uint64_t exempt; /* such pages of a mapping, which are part of neither */
    /* bytes - used; 0 if unknown, or if items hold memory that the kernel has not counted yet:
     * the two are read at different moments */
    uint64_t other;
};
void dash_total(const struct dash *d, struct dash_total *out);

#endif
