/*
 * rates_book.h - the file of measured rates of weight types in the cache folder.
 *
 * Each line is one type: Unix time, version of the program, processor, kernels, "exact" or
 * "usual", threads, type; then bytes per second of one column with its spread, doubt and time
 * of correction, and operations per second of a chunk with the same.  In a line with the type
 * "steps", the costs of struct mw_steps follow, with spread and doubt.  New lines come first.
 * Lines that do not make sense are ignored.  The file may be deleted at any time.
 *
 * Rates hold for every model, because all are measured with one shape.  Another version of the
 * program has other kernels and measures again.
 */
#ifndef MEMWALL_SRC_RATES_BOOK_H
#define MEMWALL_SRC_RATES_BOOK_H

#include "engine/memwall.h"

/* Rates hold only for the same key. */
struct rates_key {
    char build[48];
    char cpu[64]; /* one word */
    char kernels[16];
    bool exact;
    int n_thread;
};

/*
 * Set the rates of l that were not measured (measured_s 0) to the newest ones in the file that
 * are not too old at Unix time now_s: a day, or an hour if they are doubtful.  The same for the
 * costs of steps.  Returns whether all rates and costs are known now.
 */
bool rates_book_find(const char *path, const struct rates_key *k, int64_t now_s,
                     struct mw_limits *l);

/* Write the measured rates and costs of l to the file, in place of those of the same key and
 * type, except that doubtful ones do not replace trustworthy ones that are valid at now_s.  A
 * failure is silent. */
void rates_book_keep(const char *path, const struct rates_key *k, int64_t now_s,
                     const struct mw_limits *l);

#endif
