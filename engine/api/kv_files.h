/*
 * kv_files.h - KV files: the keys and values of saved chats, which mw_chat_save_kv() writes.
 *
 * A KV file contains the conversation, as tokens, so its mode is 0600.  All are in one folder,
 * and the least recently used ones go when they take more than a limit.  Any of them may be
 * deleted at any time: then its chat is evaluated again.
 */
#ifndef MEMWALL_ENGINE_API_KV_FILES_H
#define MEMWALL_ENGINE_API_KV_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define MW_KV_SUFFIX ".kv"
/* The name of a file with a beginning that chats share begins so.  The name of a chat does not
 * begin with a dot. */
#define MW_KV_BEGINNING        ".beginning-"
#define MW_KV_BEGINNING_DIGITS 32 /* after it */

struct mw_kv_file {
    char name[96];    /* of the file without MW_KV_SUFFIX; may be unsafe for a terminal */
    char model[128];  /* the same; "": not known */
    bool is_beginning; /* that chats share, of no chat alone */
    bool is_unfinished; /* it is being written, or its writer was killed the first time */
    uint32_t n_token; /* 0: unfinished, or the file cannot be read */
    uint64_t bytes;   /* on the disk */
    int64_t used_s;   /* when it was written or loaded */
    int64_t used_ns;  /* of that second */
};

struct mw_model;
struct mw_options;

/* Memory that saving and loading takes, a part of the plan item `program`; 0 without
 * mw_options.saves_kv. */
uint64_t mw_kv_file_bytes(const struct mw_model *m, const struct mw_options *o);

/* List the KV files of a folder, the last used one first, for free().  A missing folder has
 * none. */
int mw_kv_list(const char *folder, struct mw_kv_file **out, size_t *n, struct err *e);
/* Returns whether path is a KV file with tokens, and describes it. */
bool mw_kv_look(const char *path, struct mw_kv_file *out);

/*
 * Predict the seconds to read a KV file of so many bytes, from a disk that reads disk_bytes_s; 0:
 * not known.  While ahead_bytes of weights are read, too, each of its pieces waits for the blocks
 * in flight, so it gets a ninth of the rate.  Between its pieces, memory for them is fetched at
 * fresh_bytes_s; 0: in no time.
 */
double mw_kv_read_s(uint64_t bytes, uint64_t ahead_bytes, double disk_bytes_s,
                    double fresh_bytes_s);

/* The limit of all files together unless a person sets another: MW_KV_LIMIT, or a tenth of the
 * disk space that is free or theirs, if that is less. */
#define MW_KV_LIMIT ((uint64_t)4 << 30)
uint64_t mw_kv_limit(const char *folder);
/* Delete the unfinished files of a folder that no process writes or has written in the last minute,
 * and then the least recently used ones until at most `limit` bytes are left.  The file at keep
 * (NULL: none) stays, and so does one that a process reads or writes. */
void mw_kv_trim(const char *folder, uint64_t limit, const char *keep);

#endif
