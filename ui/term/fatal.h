/*
 * fatal.h - a crash gives the terminal back.
 *
 * The handler may use nothing but system calls that are allowed in one, so all that it
 * writes is prepared beforehand.
 */
#ifndef MEMWALL_UI_TERM_FATAL_H
#define MEMWALL_UI_TERM_FATAL_H

#include <stddef.h>

#include <termios.h>

/* From here on SEGV, BUS, FPE, ILL and ABRT write bytes (which make the screen ordinary)
 * and a line to fd, restore its modes, and then do what they do. */
void fatal_arm(int fd, const struct termios *modes, const char *bytes, size_t n,
               const char *line);
void fatal_disarm(void);

#endif
