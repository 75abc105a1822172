/*
 * store.h - what is remembered of this machine between runs: one file of JSON lines.
 *
 *     {"kind":"disk","of":"2049 auto 2 Some_CPU 2048","time":1799999940,"doubtful":false,
 *      "bytes_s":2.1e9,"memory_bytes_s":1.9e10,...}
 *
 * A line is one measurement of one kind, of one thing.  New lines come first.  Programs that
 * write at the same time wait for each other, two seconds at most.  Lines that do not make sense
 * are left out, and the file may be deleted at any time.
 */
#ifndef MEMWALL_ENGINE_LIMITS_STORE_H
#define MEMWALL_ENGINE_LIMITS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/json_write.h"
#include "engine/limits/limits.h"
#include "engine/limits/tried.h"

#define STORE_FILE_MOST ((size_t)512 << 10) /* memwall did not write a longer one */

enum limits_kind {
    LIMITS_DISK,    /* a disk, memory, their contention, and fresh memory */
    LIMITS_TYPE,    /* struct mw_rate */
    LIMITS_STEPS,   /* struct mw_steps */
    LIMITS_WAYS,    /* struct mw_ways */
    LIMITS_FORM,    /* a weight type as in the file and interleaved: limits_forms() */
    LIMITS_THREADS, /* struct mw_threads */
    LIMITS_PRODUCT, /* products by the kernels and by OpenBLAS, whose name is the text */
    LIMITS_MODEL,   /* struct mw_expert_use */
    LIMITS_ANCHOR,  /* the newest tokens of a model, struct plan_anchor, as its numbers */
    LIMITS_TRIED,   /* settings with which a model answered, struct mw_tried; many of a model */
    LIMITS_KINDS
};

#define LIMITS_VALUES 28

struct limits_line {
    enum limits_kind kind;
    char of[200];
    int64_t time_s; /* Unix time */
    bool is_doubtful;
    char text[64];
    double value[LIMITS_VALUES]; /* in the order of the kind's names */
};

struct limits_store {
    struct limits_line *line; /* [n], the newest first */
    size_t n;
};

/* Read the file.  Without one, or without memory, the store is empty.  The caller frees it. */
void limits_store_read(struct limits_store *s, const char *path);
/* The same with the text of a file, which is changed; NULL: there is none. */
void limits_store_parse(struct limits_store *s, char *text);
/* Write the lines as the file has them. */
void limits_store_print(const struct limits_store *s, struct json *j);
void limits_store_free(struct limits_store *s);

/* Find the newest line of something that is not too old at now_s; NULL if there is none.  The
 * pointer is valid until the store changes. */
const struct limits_line *limits_store_find(const struct limits_store *s, enum limits_kind kind,
                                            const char *of, int64_t now_s);
/* The newest line of something, however old it is. */
const struct limits_line *limits_store_last(const struct limits_store *s, enum limits_kind kind,
                                            const char *of);
/* The same as limits_store_find() for all things whose names begin like this. */
const struct limits_line *limits_store_find_like(const struct limits_store *s,
                                                 enum limits_kind kind, const char *beginning,
                                                 int64_t now_s);

/* Put a line first.  It replaces the line of the same thing (of tried settings: of the same
 * ones), and those of weight types that it contradicts.  Returns false, and changes nothing, if it
 * is doubtful and one of them is not, if it is there already, or without memory. */
bool limits_store_add(struct limits_store *s, const struct limits_line *l);

/* Write the tried settings of a model, newest first, to list[MW_TRIED_MOST].  Returns their
 * number. */
size_t limits_store_tried(const struct limits_store *s, const char *of, int64_t now_s,
                          struct mw_tried *list);

/* Add n lines, the last one first, to the file.  A failure is silent. */
void limits_store_keep(const char *path, const struct limits_line *lines, size_t n);

/* The machine, the disk, the program and the model that limits are of. */
struct limits_key {
    uint64_t dev; /* of the file system */
    char io[16];
    uint64_t read_kib; /* of a read; 0: any */
    bool is_small;     /* a file that is read in a moment: its rate holds for no other file */
    int n_thread, n_core, n_cpu;
    char cpu[64];
    char build[48]; /* of the program: another one has other kernels */
    char kernels[16];
    bool exact;
    char model[128]; /* limits_model_of(); "": none */
};

/* Name a file of weights, or a folder with them, by what changes when it does: device, inode,
 * size and times.  "" if there is nothing at path. */
void limits_model_of(const char *path, char *buf, size_t n);

/* Set *t from the store.  Returns whether it was found. */
bool limits_store_threads(const struct limits_store *s, const struct limits_key *k,
                          int64_t now_s, struct mw_threads *t);
struct limits_line limits_threads_line(const struct limits_key *k, const struct mw_threads *t);

/* Name the thing that a line of this kind is of.  type: a weight type. */
void limits_name(const struct limits_key *k, enum limits_kind kind, const char *type,
                 char of[200]);

/*
 * Set the limits of *l from the store: disk and memory, the rates of the types that it lists
 * and that have none, ways of products, the costs of steps, and the use of experts.  A disk that
 * was measured with reads of another size is better than none.  Returns whether all but that use are known.
 */
bool limits_store_get(const struct limits_store *s, const struct limits_key *k, int64_t now_s,
                      struct mw_limits *l);

/* Write *l as lines, of which there are at most LIMITS_LINES.  Returns their number. */
#define LIMITS_LINES (MW_RATES_MAX + 4)
size_t limits_store_lines(const struct limits_key *k, const struct mw_limits *l,
                          struct limits_line lines[LIMITS_LINES]);

#endif
