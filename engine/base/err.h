/*
 * err.h - an error as a value: what is wrong, and where.
 *
 * The struct is on the caller's stack, so reporting an error never allocates.  The
 * function that finds the error stores a code and a sentence, a caller that knows the
 * file adds its name, and the program shows it.  No function both logs and returns an
 * error.  Sentences start in lower case, end without a full stop and name the values.
 */
#ifndef MEMWALL_ENGINE_BASE_ERR_H
#define MEMWALL_ENGINE_BASE_ERR_H

#include <stddef.h>
#include <stdint.h>

enum err_code {
    ERR_NONE,
    ERR_IO,          /* a system call failed; sys is its errno */
    ERR_FORMAT,      /* a file or text is not what it claims to be */
    ERR_UNSUPPORTED, /* valid, but memwall cannot do it */
    ERR_ARGUMENT,    /* the request itself is wrong */
    ERR_BUDGET,      /* does not fit the memory budget */
    ERR_MEMORY,      /* the system has no memory left */
    ERR_CONTEXT,     /* the context is full */
    ERR_CANCELLED,   /* the user stopped it; not shown as an error */
};

#define ERR_NO_OFFSET UINT64_MAX

struct err {
    enum err_code code;
    int sys;         /* errno, or 0 */
    uint64_t offset; /* byte in file, or ERR_NO_OFFSET */
    char file[192];  /* as the user named it, or "" */
    char field[96];  /* "blk.7.ffn_down.weight", "general.alignment", or "" */
    char what[640];  /* "row length 255 is not a multiple of 32" */
};

/* clang-format off */
#define ERR_INIT { ERR_NONE, 0, ERR_NO_OFFSET, "", "", "" }
/* clang-format on */

/* Replace *e by a code and a sentence.  Always returns -1. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: ERR_IO, or ERR_MEMORY for ENOMEM.  Stores errno and
 * adds its text to the sentence.  Always returns -1. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "not enough memory for X": ERR_MEMORY, where fmt names X ("a table of %u names").
 * Always returns -1. */
int err_memory(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Add where it is; parts that are already set stay.  file and field may be NULL, offset may
 * be ERR_NO_OFFSET.  Control characters in file and field become '?'.  Always returns -1.
 */
int err_at(struct err *e, const char *file, uint64_t offset, const char *field);

/* Write "file: field at byte N: what" to buf, which always ends in NUL. */
void err_text(const struct err *e, char *buf, size_t n);

#endif
