/*
 * modes.h - modes of the terminal that decide which bytes a key sends, and how text is drawn.
 *
 * An earlier program may have left any of them: it crashed, or the connection to it broke.
 * memwall therefore sets all of them at its start and after each stop.  At its end and for
 * other programs it restores the ordinary modes, as shells expect them.  kitty's keyboard
 * protocol has a stack of modes for each of the two screens, so the mode before is restored
 * there.
 *
 *     modes_known       on the ordinary screen
 *     modes_push_keys   after the alternate screen was entered
 *     modes_pop_keys    before it is left
 */
#ifndef MEMWALL_UI_TERM_MODES_H
#define MEMWALL_UI_TERM_MODES_H

/* Each returns the bytes for a terminal of this name, "linux" or "xterm-256color". */
const char *modes_known(const char *term);
const char *modes_push_keys(const char *term);
const char *modes_pop_keys(const char *term);

/* The bytes that make Ctrl-C and Ctrl-Z signals again, for commands without a screen; also on
 * the ordinary screen before the other one is entered.  "" if the terminal, which may be NULL,
 * could print them. */
const char *modes_control_keys(const char *term);

#endif
