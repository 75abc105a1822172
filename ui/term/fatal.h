/*
 * fatal.h - restores the terminal after a crash, or a signal that ends the program.
 *
 * The handler may only use async-signal-safe calls, so everything it writes is prepared in
 * advance.
 */
#ifndef MEMWALL_UI_TERM_FATAL_H
#define MEMWALL_UI_TERM_FATAL_H

#include <stddef.h>

#include <termios.h>

/* Install handlers for SEGV, BUS, FPE, ILL and ABRT, and for INT, TERM and HUP unless these are
 * ignored: they write bytes (which leave the alternate screen) and one line, or "", to fd, drop
 * what was typed, restore its modes, and then take the default action. */
void fatal_arm(int fd, const struct termios *modes, const char *bytes, size_t n,
               const char *line);
void fatal_disarm(void);

#endif
