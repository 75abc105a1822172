/*
 * limits.h - measured limits of this machine, as plain data.
 *
 * The rule for all of them:
 *
 *   1. A rate comes from a probe, or from work.  A rate that was never probed stays unknown.
 *   2. A probe is repeated until its slices agree.  If they do not, or if other programs used
 *      the processors or the disk, the rate is doubtful.
 *   3. A doubtful rate serves until there is a better one, for ten minutes at most.  It never
 *      replaces a trusted one, and nothing is advised because of it.
 *   4. Work that is faster than a rate raises it at once: the machine can do it.
 *   5. Work that is slower than 9/10 of a rate, OBSERVE_SLOW times without a fast one between
 *      them, lowers it to their mean.  Only work that waited for this limit alone counts, and
 *      only once in OBSERVE_APART_S seconds: one slow minute of the machine is one slow time.
 *   6. Rates are forgotten after a day, and the use of experts after a month.
 *   7. Disk, memory, fresh memory and contention are measured in one go and kept together; so are
 *      the weight types of a model if two of them contradict each other (limits_agree()).  If
 *      they still do after that, they are believed.
 */
#ifndef MEMWALL_ENGINE_LIMITS_LIMITS_H
#define MEMWALL_ENGINE_LIMITS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* The meaning of is_doubtful in words. */
#define MW_DOUBT "the machine was busy, or the budget too small to measure it"

/* How fast the threads and kernels of the options multiply weights of one type. */
struct mw_rate {
    char type[16];         /* "Q4_K", or MW_RATE_PACKED, or "Q4_K-x16" */
    double column_bytes_s; /* one column with weights from memory, as for a decoded token */
    double few_bytes_s;    /* LIMITS_FEW columns, as for verifying drafts */
    double chunk_flops_s;  /* many columns, as for a prompt */
    bool is_doubtful;
    int64_t measured_s; /* Unix time; 0: not measured */
};
#define LIMITS_FEW    4 /* columns of few_bytes_s */
#define MW_RATE_TYPES 4 /* weight types of a model that are measured */
/* The forms of pinned weights have rates of their own: */
#define MW_RATE_PACKED      "BF16-packed" /* the column counts packed bytes */
#define MW_RATE_INTERLEAVED "-x16"        /* after the type: sixteen rows side by side */
#define MW_RATES_MAX        (2 * MW_RATE_TYPES + 1)

/* The costs of a pass besides products of weights, with the threads and kernels of the options.
 * Times are those of one thread, except that all take part in a round. */
#define MW_STEPS_KV 4 /* types of keys and values, as enum mw_kv */
struct mw_steps {
    double round_s;             /* to hand a job to the threads and wait for the last one */
    double wake_s;              /* to wake a thread that sleeps */
    double value_s;             /* a value in a norm, a sum, or the packing of a column */
    double curve_s;             /* a value in an activation function */
    double load_s[MW_STEPS_KV]; /* attention: a value of a key or value that is loaded, */
    double mac_s[MW_STEPS_KV];  /* and a multiply-add of a query with it */
    bool is_doubtful;
    int64_t measured_s; /* Unix time; 0: not measured */
};

/* The ways of products (compute/ways.h): the index of one for each choice.  model/way_rates.h has
 * the rule. */
#define MW_WAY_CHOICES 10
struct mw_ways {
    uint32_t way[MW_WAY_CHOICES];
    bool is_known;      /* way[] was chosen, perhaps long ago */
    bool is_doubtful;   /* the machine was busy, or a way is new: compare them again soon */
    int64_t measured_s; /* Unix time; 0: not measured, or too long ago */
};

/*
 * Numbers of threads that were compared: seconds for a weight in one token of an answer and one of
 * a prompt.  One thread per core is compared with one fewer, and with one per processor where some
 * processors share a core or are efficient ones.
 */
struct mw_threads {
    int n_core, n_cpu; /* as in struct mw_machine */
    double core_s, fewer_s, cpu_s; /* 0: not compared */
    bool is_doubtful;
    int64_t measured_s; /* Unix time; 0: not measured */
};
/* Returns the number to use: one per core, unless another is this much faster. */
#define LIMITS_THREADS_MARGIN 1.05
int limits_threads(const struct mw_threads *t);

/*
 * How often the routers of a model use its experts, as sessions saw it: the experts of each
 * layer, ranked by the tokens that chose them, in MW_USE_PARTS equal parts.  With even use, all
 * parts have the same share.
 */
#define MW_USE_PARTS 16
struct mw_expert_use {
    double share[MW_USE_PARTS];    /* of all uses, the most popular part first */
    double n_token;                /* that were watched */
    int64_t observed_s;            /* Unix time; 0: never, and even use is assumed */
};

/*
 * Measured limits of this machine, from which speed is predicted and explained.  They hold for
 * one machine and file system.
 */
struct mw_limits {
    double disk_bytes_s;   /* reading the model's file as the options ask; 0: not measured */
    double mirror_bytes_s; /* the same of a copy on another disk; 0: not measured, or none */
    double memory_bytes_s; /* reading memory with the threads of the options */
    double fresh_bytes_s;  /* one thread fetches small pages and writes them; 0: not measured */
    /* Both ways to read, from which MW_IO_AUTO chooses; 0: not compared. */
    double direct_bytes_s, buffered_bytes_s;
    double lookup_s;    /* one small read of the disk while nothing else is read */
    double read_cpu_s;  /* processor time to read a byte from the disk */
    double contention;  /* how much reading and computing slow each other; probe_contention() */
    bool is_doubtful;   /* of disk, memory or their contention */
    int64_t measured_s; /* Unix time when they were measured or last seen at work; 0: unknown */
    int n_thread;       /* that computed when rates were measured; 0: as many as will compute */
    struct mw_ways ways;
    struct mw_steps steps;
    struct mw_rate rate[MW_RATES_MAX]; /* [n_rate] of the weight types that the model uses */
    uint32_t n_rate;
    struct mw_expert_use expert_use; /* of the model */
};

/*
 * Do the rates of one column fit each other?  A type with more bits for a weight moves at least
 * as many bytes a second, unless the kernel computes, and at most as many weights, up to
 * LIMITS_KNOWN_RATIO.  No type is read faster than memory.  If two rates do not fit, at least one
 * was measured in a bad moment, or came from a cache.
 */
#define LIMITS_KNOWN_RATIO 3.0
bool limits_types_agree(const char *type, double bytes_s, const char *other, double other_s);
/* The same for all rates of *l. */
bool limits_agree(const struct mw_limits *l);
/* Are all types read at most LIMITS_KNOWN_RATIO times as fast as memory? */
bool limits_memory_allows(const struct mw_limits *l);
/* Were all rates measured in one go, and none of them faster than memory?  If they do not agree
 * then, another go would not help: the kernels of these types differ more than is known. */
#define LIMITS_ONE_GO_S 10
bool limits_of_one_go(const struct mw_limits *l);

/*
 * Compare the forms of a weight type, as in the file and interleaved: seconds for a weight in one
 * token of an answer, one of a pass that verifies drafts, and one of a prompt.  Returns whether
 * both are known and trusted, and were measured in one go: the choice is made once, and a machine
 * is not always as fast.
 */
bool limits_forms(const struct mw_limits *l, const char *type, double *in_file_s,
                  double *interleaved_s);
/* Pinned weights stay as in the file if that is faster by this factor, which covers noise. */
#define LIMITS_FORM_MARGIN 1.05

#endif
