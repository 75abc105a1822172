/*
 * err.h - an error as a value: what is wrong, and where.
 *
 * The struct lies on the caller's stack; reporting that nothing could be
 * allocated allocates nothing.  Whoever notices stores code and sentence,
 * whoever knows the file adds it, whoever decides shows it.  Nobody logs and
 * returns.  Sentences are lower case without a full stop, values are named.
 */
#ifndef MEMWALL_ENGINE_BASE_ERR_H
#define MEMWALL_ENGINE_BASE_ERR_H

#include <stddef.h>
#include <stdint.h>

enum err_code {
    ERR_NONE,
    ERR_IO,          /* a system call failed; sys is its errno */
    ERR_FORMAT,      /* a file or text is not what it claims to be */
    ERR_UNSUPPORTED, /* valid, but not something memwall does */
    ERR_ARGUMENT,    /* the caller asked for something impossible */
    ERR_BUDGET,      /* does not fit the memory budget */
    ERR_MEMORY,      /* the system gave no memory */
    ERR_CONTEXT,     /* the context is full */
    ERR_CANCELLED,   /* the person stopped it; not shown as an error */
};

#define ERR_NO_OFFSET UINT64_MAX

struct err {
    enum err_code code;
    int sys;         /* errno, or 0 */
    uint64_t offset; /* byte in file, or ERR_NO_OFFSET */
    char file[192];  /* as the user named it, or "" */
    char field[96];  /* "blk.7.ffn_down.weight", "general.alignment", or "" */
    char what[256];  /* "row length 255 is not a multiple of 32" */
};

/* clang-format off */
#define ERR_INIT { ERR_NONE, 0, ERR_NO_OFFSET, "", "", "" }
/* clang-format on */

/* Forget what was there and store code and sentence.  Always returns -1. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: ERR_IO (ERR_MEMORY for ENOMEM), errno
 * kept and spelled out after the sentence.  Always returns -1. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "not enough memory for X": ERR_MEMORY, where fmt names X ("a table of %u names").
 * Always returns -1. */
int err_memory(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Say where; parts already known are kept.  file and field may be NULL, offset
 * ERR_NO_OFFSET.  Bytes of file and field that a terminal would obey are stored as
 * '?'.  Always returns -1.
 */
int err_at(struct err *e, const char *file, uint64_t offset, const char *field);

/* "file: field at byte N: what", for a person; buf always ends in NUL. */
void err_text(const struct err *e, char *buf, size_t n);

#endif
