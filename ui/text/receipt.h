/*
 * receipt.h - what an answer will cost, costs and has cost, in words.
 *
 * One rule for sizes: what is held is counted as memory is (KiB, MiB, GiB), what passes
 * from the disk as disks are sold (kB, MB, GB).  Figures come from the counters; an
 * estimate begins with "about".  ascii: no characters beyond ASCII.
 */
#ifndef MEMWALL_UI_TEXT_RECEIPT_H
#define MEMWALL_UI_TEXT_RECEIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

/* "12 tokens · 3.4 s · 3.5 tok/s · 41 GB read · 71 % disk wait · peak 1.42 GiB".
 * Returns buf, which always ends in NUL; what was not measured is left out. */
char *receipt_line(char *buf, size_t n, const struct mw_receipt *r, bool ascii);

/* The same in two or three words: "3.5 tok/s, 71 % disk". */
char *receipt_short(char *buf, size_t n, const struct mw_receipt *r);

/* Three sentences on why the answer took what it took: what was done, what it waited for,
 * what would help.  s: a sample taken after it (NULL: the third sentence is general). */
char *receipt_why(char *buf, size_t n, const struct mw_receipt *r, const struct mw_sample *s);

/* "about 2,140 tokens: 55 s, 9 GB of reads"; with a warning when the context has not room. */
char *receipt_cost(char *buf, size_t n, const struct mw_cost *c);

/* "reading the prompt: 512 of 2,140 tokens, 24 % · 38 tok/s · 43 s left".  elapsed_ns since
 * the prompt was begun; 0 of total is allowed.  *share: 0 to 1, for a bar. */
char *receipt_prefill(char *buf, size_t n, uint64_t done, uint64_t total, uint64_t elapsed_ns,
                      bool ascii, double *share);

/* "0.55", "3.41", "24.1", "693", "24,200": tokens a second. */
char *receipt_rate(char *buf, size_t n, double per_s);
/* "2,140", "3.4 s", "55 s", "2 min 5 s", "1 h 3 min", "41 GB": helpers for others. */
char *receipt_count(char *buf, size_t n, uint64_t value);
char *receipt_time(char *buf, size_t n, double seconds);
char *receipt_traffic(char *buf, size_t n, uint64_t bytes);

#endif
