#include "config.h"

#include "ui/term/modes.h"

#include "ui/term/window.h"

#define KEYS_KNOWN                                                                             \
    "\033>"                        /* the keypad sends digits */                               \
    "\033[?1l"                     /* cursor keys send ESC [ A */                              \
    "\033[?9001l"                  /* keys as characters, not as events of Windows */          \
    "\033[2;4;20l"                 /* keyboard unlocked, no insertion, Enter sends CR alone */ \
    "\033[?1004l"                  /* no reports of focus */                                   \
    "\033[?2004l"                  /* no marks around pastes */                                \
    "\033[?9;1000;1001;1002;1003l" /* no mouse, */                                             \
    "\033[?1005;1006;1015;1016l"   /* and none of its encodings */

#define TEXT_KNOWN                                                                             \
    "\033[?2026l" /* frames are shown at once */                                               \
    "\033[?69l"   /* no margins at left and right */                                           \
    "\033[?7h"    /* lines wrap */                                                             \
    "\033(B\017"  /* ASCII */                                                                  \
    "\033[0m"     /* no attributes and colours */

#define OTHER_KEYS_OFF "\033[>4;0m" /* xterm's modifyOtherKeys */

/* The modes in which Ctrl-C sends a sequence that does not become a signal. */
#define CONTROL_KEYS_KNOWN                                                                     \
    "\033[=0;1u"    /* kitty's protocol, of the program that has not ended its mode */         \
    OTHER_KEYS_OFF                                                                             \
    "\033[?9001l"

/* Terminals that have no modes of keys may read these sequences as others: the 'u' of a vt220
 * or ansi terminal moves the cursor, and older consoles of Linux print what follows '>' and
 * '<'.  So they are sent only to terminals whose names are known. */

const char *modes_known(const char *term)
{
    /* Some terminals read OTHER_KEYS_OFF as attributes, so these are reset after it. */
    return window_is_known(term) ? KEYS_KNOWN OTHER_KEYS_OFF TEXT_KNOWN : KEYS_KNOWN TEXT_KNOWN;
}

const char *modes_push_keys(const char *term)
{
    return window_is_known(term) ? "\033[>0u" : "";
}

const char *modes_pop_keys(const char *term)
{
    return window_is_known(term) ? "\033[<u" : "";
}

const char *modes_control_keys(const char *term)
{
    return window_is_known(term) ? CONTROL_KEYS_KNOWN : "";
}
