/*
 * shell.h - a command of the shell that the person typed after "!": its output is shown and
 * goes with the next message.
 *
 * It runs beside the loop, without the terminal and without input.  Time and output are
 * bounded.
 *
 *     shell_start ──> fd is readable ──> shell_read ──> ends, or shell_stop ──> shell_take
 */
#ifndef MEMWALL_UI_TALK_SHELL_H
#define MEMWALL_UI_TALK_SHELL_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

#define SHELL_SECONDS  60
#define SHELL_MAX_TEXT ((size_t)64 << 10) /* of the output, the first part of it */

struct shell {
    pid_t pid; /* 0: none runs; also the number of its process group */
    int fd;    /* of its output */
    char command[200];
    char *text;
    size_t n, room;
    uint64_t n_left;          /* bytes that were not kept */
    uint64_t end_ns, kill_ns; /* when it is stopped, and when it is killed; 0: not yet */
    uint64_t over_ns;         /* after that its output is not waited for; 0: not killed yet */
    bool is_stopped, is_late, is_over;
};

/* Run a command.  At most `room` bytes of its output are kept.  -1 with *e. */
int shell_start(struct shell *s, const char *command, size_t room, struct err *e);
bool shell_runs(const struct shell *s);
/* Read what there is.  Returns whether the command has ended. */
bool shell_read(struct shell *s);
/* Ask the command to stop, as Ctrl-C does; the second time, kill it. */
void shell_stop(struct shell *s);
/* Stop what takes too long. */
void shell_tick(struct shell *s);
uint64_t shell_wait(const struct shell *s); /* nanoseconds until then; UINT64_MAX: never */

/* Take over the output of a command that has ended: text without controls, to be
 * freed, and its exit status (128 + the number of a signal).  NULL: no memory. */
char *shell_take(struct shell *s, size_t *n, int *status);
void shell_free(struct shell *s); /* kill what runs */

/* Remove escape sequences, and what a terminal would have overwritten, from text[0 .. n).
 * Returns the new length. */
size_t shell_plain(char *text, size_t n);

#endif
