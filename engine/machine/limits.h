/*
 * limits.h - measured limits of this machine, as plain data.
 */
#ifndef MEMWALL_ENGINE_MACHINE_LIMITS_H
#define MEMWALL_ENGINE_MACHINE_LIMITS_H

#include <stdint.h>

/* Reasons to doubt a measured rate, as bits. */
enum mw_doubt {
    MW_DOUBT_SPREAD = 1,  /* the slices of the measurement are far apart */
    MW_DOUBT_BUSY = 2,    /* other programs used the processors */
    MW_DOUBT_CACHED = 4,  /* the page cache would not let go of the file */
    MW_DOUBT_DIFFERS = 8, /* far from an earlier measurement of the same disk */
    MW_DOUBT_ALL = 15
};

/* How sure a rate is. */
struct mw_sure {
    double spread;      /* half the distance of its slices, as a share of it */
    uint32_t doubt;     /* bits of enum mw_doubt; 0: none */
    int64_t observed_s; /* Unix time when work corrected it (observe.h); 0: never */
};

/* How fast the threads and kernels of the options multiply weights of one type. */
struct mw_rate {
    char type[16];         /* "Q4_K", or MW_RATE_PACKED, or "Q4_K-x16" */
    double column_bytes_s; /* one column with weights from memory, as for a decoded token */
    double chunk_flops_s;  /* many columns, as for a prompt */
    struct mw_sure column, chunk;
    int64_t measured_s; /* Unix time of the measurement */
};
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
    struct mw_sure sure;
    int64_t measured_s; /* Unix time; 0: not measured */
};

/*
 * The choices of the routers of a model, as sessions saw them: the experts of each layer,
 * ranked by the tokens that chose them, in MW_CHOICE_PARTS equal parts.  With an even choice,
 * all parts have the same share.
 */
#define MW_CHOICE_PARTS 16
struct mw_choice {
    double share[MW_CHOICE_PARTS]; /* of all choices, the most popular part first */
    double n_token;                /* that were watched */
    int64_t observed_s;            /* Unix time; 0: never, and an even choice is assumed */
};

/*
 * Measured limits of this machine, from which speed is predicted and explained.  They hold for
 * one machine and file system and change with time, so the caller decides how long to keep
 * them.
 */
struct mw_limits {
    double disk_bytes_s;   /* reading the model's file as the options ask; 0: not measured */
    double memory_bytes_s; /* reading memory with the threads of the options */
    /* Both ways to read, from which MW_IO_AUTO chooses; 0: not compared. */
    double direct_bytes_s, buffered_bytes_s;
    struct mw_sure disk, memory;
    double lookup_s;   /* one small read of the disk while nothing else is read */
    double read_cpu_s; /* processor time to read a byte from the disk */
    double contention; /* how much reading and computing slow each other; probe_contention() */
    struct mw_steps steps;
    double load;        /* share of the processors that other programs used meanwhile */
    int64_t measured_s; /* Unix time of the measurement; 0: unknown */
    struct mw_rate rate[MW_RATES_MAX]; /* [n_rate] of the weight types that the model uses */
    uint32_t n_rate;
    struct mw_choice choice; /* of the model's experts */
};

#endif
