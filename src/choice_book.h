/*
 * choice_book.h - the file of observed choices of experts in the cache folder.
 *
 * Each line is one model: Unix time, device, inode, size and times of change of its file (of its
 * content, and of anything), tokens that were watched, and the shares of struct mw_choice.  New lines come first.  Lines that do
 * not make sense are ignored.  The file may be deleted at any time.
 *
 * Routers do not change, only texts do, so a choice is kept for a month.
 */
#ifndef MEMWALL_SRC_CHOICE_BOOK_H
#define MEMWALL_SRC_CHOICE_BOOK_H

#include "engine/memwall.h"

/* A file of weights, or a folder with them. */
struct choice_key {
    uint64_t dev, inode, bytes;
    int64_t changed_ns, inode_changed_ns;
};

/* All 0 if there is nothing at path. */
void choice_key_of(struct choice_key *k, const char *path);

/* Set *out to the kept choice of the file at Unix time now_s, or to zeros. */
void choice_book_find(const char *path, const struct choice_key *k, int64_t now_s,
                      struct mw_choice *out);

/* Write an observed choice in place of an earlier one of the same file.  A failure is silent.
 */
void choice_book_keep(const char *path, const struct choice_key *k, const struct mw_choice *c);

#endif
