/*
 * catch.h - catches the bytes that ncurses writes for a frame, and sends fewer.
 *
 * ncurses has no hook for its output; it writes to a descriptor.  During a frame that
 * descriptor is a file in memory.  Afterwards its bytes go through the filter of sgr.h to the
 * terminal, in as few writes as possible.
 */
#ifndef MEMWALL_UI_TERM_CATCH_H
#define MEMWALL_UI_TERM_CATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/term/sgr.h"

struct catch
{
    int fd;   /* that ncurses writes to */
    int file; /* in memory; -1: nothing is caught */
    int terminal;
    bool thins; /* the filter is used */
    struct sgr_filter filter;
    char out[4096];
    size_t n_out;
};

typedef void catch_send(void *ctx, const char *bytes, size_t n);

/* Catch what is written to fd, which is another descriptor of terminal.  thins: the terminal
 * knows what the filter sends.  Where the Linux kernel has no files in memory, everything goes
 * to the terminal as it is. */
void catch_open(struct catch *c, int fd, int terminal, bool thins);
void catch_close(struct catch *c);

void catch_begin(struct catch *c);
/* Send the bytes caught since catch_begin. */
void catch_end(struct catch *c, catch_send *send, void *ctx);
/* Give the terminal the look that ncurses believes it has, for those who write to it next.  The
 * next frame often needs the look that the last one ended with. */
void catch_settle(struct catch *c, catch_send *send, void *ctx);

#endif
