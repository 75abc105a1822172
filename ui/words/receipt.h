/*
 * receipt.h - the predicted, current and final cost of an answer, in words.
 *
 * Memory sizes are in KiB, MiB and GiB, disk traffic in kB, MB and GB.  Figures come from the
 * counters; an estimate begins with "about".  ascii: use ASCII characters only.
 */
#ifndef MEMWALL_UI_WORDS_RECEIPT_H
#define MEMWALL_UI_WORDS_RECEIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

/* "12 tokens · 3.4 s · 3.5 tok/s · 38.2 GiB read · 71 % disk wait · peak 1.42 GiB".
 * Returns buf, NUL-terminated; figures that were not measured are left out. */
char *receipt_line(char *buf, size_t n, const struct mw_receipt *r, bool ascii);

/* "131,072 tokens: 805 MiB of keys and values on the disk, 805 MiB more to read for each token,
 * ~1.1 tok/s": what a plan with keys and values on the disk costs.  Returns buf. */
char *receipt_kv_disk(char *buf, size_t n, const struct plan *p);

/* "1,794 of 3,840 experts in memory, 47 % of the chosen ones (measured)", of a plan for a
 * mixture of experts. */
char *receipt_experts(char *buf, size_t n, const struct plan *p);

/* "the answer has no text: the limit of 20 tokens (-n) was reached while the model was thinking;
 * use a larger -n, or --no-think".  "" for an answer that has text.  is_chat: name the commands
 * of the chat in place of options, and say that the answer has no text yet if it can go on. */
char *receipt_empty(char *buf, size_t n, const struct mw_receipt *r, bool is_chat);

/* Returns the share of the answer's time spent waiting for the disk. */
double receipt_stall_share(const struct mw_receipt *r);

/* The short form: "3.5 tok/s, 71 % disk". */
char *receipt_short(char *buf, size_t n, const struct mw_receipt *r);

/* Three sentences about the time of an answer: the work, the stalls, and the diagnosis of s, a
 * sample taken after it, with the memory that `auto` has given back; NULL leaves those out.
 * promised_tps: what was predicted for it; 0: not known. */
char *receipt_why(char *buf, size_t n, const struct mw_receipt *r, double promised_tps,
                  const struct mw_sample *s);

/* "about 2,140 tokens: 55 s, 9 GB of reads", or that it does not fit the context.  A shorter
 * form replaces a text of more than columns. */
char *receipt_cost(char *buf, size_t n, const struct mw_cost *c, int columns);

/* "prompt 24 % · 43 s left · 512 of 2,140 tokens · 38 tok/s", the most useful part first, since
 * the last ones may not fit.  elapsed_ns is counted from the start of the prompt; a total of 0 is
 * allowed.  *share: 0 to 1, for a bar. */
char *receipt_prefill(char *buf, size_t n, uint64_t done, uint64_t total, uint64_t elapsed_ns,
                      bool ascii, double *share);

/* Returns the tokens per second of an answer; 0: not known.  The pass of the prompt makes the
 * first token, so n tokens take n - 1 passes.  The pieces of a server may arrive together, so a
 * rate over less than RECEIPT_REMOTE_NS would be that of the network. */
#define RECEIPT_REMOTE_NS 50000000
double receipt_decode_tps(const struct mw_receipt *r);
/* Returns the largest memory of an answer; 0: not known. */
uint64_t receipt_peak(const struct mw_receipt *r);

#endif
