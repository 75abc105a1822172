/*
 * limits_book.h - the file of measured limits in the cache folder.
 *
 * Each line is one measurement: Unix time, device number, I/O mode with the size of reads if
 * they are small ("auto/512K"), threads, processor, arithmetic; then bytes per second of disk
 * and memory, bytes per second of direct and of buffered reads (0: not compared); spread, doubt
 * and time of correction of the disk, the same of memory, the load, the seconds of a small
 * read, those to read a byte, the contention, and the form of the line.  New lines come first.  Lines of other versions and lines
 * with values that no machine has are ignored.  The file may be deleted at any time.
 */
#ifndef MEMWALL_SRC_LIMITS_BOOK_H
#define MEMWALL_SRC_LIMITS_BOOK_H

#include <stddef.h>

#include "engine/memwall.h"

#define BOOK_PAGES     40
#define BOOK_MAX_BYTES ((size_t)64 << 10)

/* No machine has more: bytes or operations per second, and the spread of a rate. */
#define BOOK_MOST_RATE   1e16
#define BOOK_MOST_SPREAD 100.0

/* Limits hold only for the same key. */
struct limits_key {
    uint64_t dev; /* of the file system */
    char io[24];
    int n_thread;
    char cpu[64];        /* one word */
    char arithmetic[64]; /* weight type, kernels, form of activations; "": any */
};

struct limits_page {
    struct limits_key key;
    struct mw_limits limits; /* measured_s is the time of the line */
};

struct limits_book {
    struct limits_page page[BOOK_PAGES];
    int n;
};

/* Read the file; without one the book is empty. */
void limits_book_read(struct limits_book *b, const char *path);

/* Put new limits first.  They replace those of the same key, except that doubtful ones do not
 * replace trustworthy ones. */
void limits_book_add(struct limits_book *b, const struct limits_key *k,
                     const struct mw_limits *l);

/* Write the file; a failure is silent. */
void limits_book_write(const struct limits_book *b, const char *path);

/* Find the newest limits of this key that are not too old at now_s: a day, or an hour if they
 * are doubtful.  NULL if there are none. */
const struct mw_limits *limits_book_find(const struct limits_book *b,
                                         const struct limits_key *k, int64_t now_s);
/* The same for reads of any size, if there are none of this size. */
const struct mw_limits *limits_book_find_near(const struct limits_book *b,
                                              const struct limits_key *k, int64_t now_s);

/* Find the newest trustworthy rate of this disk, of any model and at most 30 days old; 0 if
 * there is none. */
double limits_book_disk(const struct limits_book *b, const struct limits_key *k, int64_t now_s);
/* The same for reads of any size, if there is none of this size. */
double limits_book_disk_near(const struct limits_book *b, const struct limits_key *k,
                             int64_t now_s);

/* Read a file of measurements in the cache folder, for free(); the caller cuts it into lines.
 * NULL if there is none, or if it is longer than BOOK_MAX_BYTES: then memwall did not write it.
 */
char *limits_book_text(const char *path);

#endif
