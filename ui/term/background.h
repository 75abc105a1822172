/*
 * background.h - is the background of the terminal dark or light?
 *
 * The terminal is asked with OSC 11, and with DA1 after it, which every terminal answers, in
 * the order of the questions.  So the wait ends at once on terminals that do not know OSC 11.
 * COLORFGBG, which some terminals set, is the fallback.
 *
 *     ESC ] 11 ; ? ESC \      ESC ] 11 ; rgb:ffff/ffff/ffff ESC \
 *     ESC [ c                 ESC [ ? 62 ; 22 c
 *
 * tmux answers both itself (OSC 11 only if it knows the colour).  These are not asked:
 *
 *     the console of Linux    before 5.x it printed what follows ESC ]
 *     GNU screen              passes OSC 11 on, and the answer comes as typed text
 *     terminals without colour
 *     names like ansi and vt220, whose terminals may print the question
 */
#ifndef MEMWALL_UI_TERM_BACKGROUND_H
#define MEMWALL_UI_TERM_BACKGROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/keys.h"

#define BACKGROUND_ASK     "\033]11;?\033\\\033[c"
#define BACKGROUND_WAIT_NS ((uint64_t)200 * 1000 * 1000)

enum background { BACKGROUND_UNKNOWN, BACKGROUND_DARK, BACKGROUND_LIGHT };

/* Can a terminal with this name be asked?  in_tmux: $TMUX is set. */
bool background_can_ask(const char *term, bool in_tmux);
/* Returns the background that a unit of input reports; unknown for all other units. */
enum background background_of_reply(const struct key *key);
/* Is this unit the answer to the last question? */
bool background_is_last_reply(const struct key *key);
/* Returns what the value of COLORFGBG reports: "15;0", "0;default;15".  It may be NULL. */
enum background background_of_colorfgbg(const char *value);

#endif
