#include "config.h"

#include "ui/term/modes.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

/* Older consoles of Linux print the end of sequences with '>' and '<'. */
static bool is_console(const char *term)
{
    return strncmp(term, "linux", 5) == 0;
}

const char *modes_known(const char *term)
{
    /* Some terminals read OTHER_KEYS_OFF as attributes, so these are reset after it. */
    return is_console(term) ? KEYS_KNOWN TEXT_KNOWN : KEYS_KNOWN OTHER_KEYS_OFF TEXT_KNOWN;
}

const char *modes_push_keys(const char *term)
{
    return is_console(term) ? "" : "\033[>0u";
}

const char *modes_pop_keys(const char *term)
{
    return is_console(term) ? "" : "\033[<u";
}

const char *modes_control_keys(const char *term)
{
    /* They print such sequences, or have no modes of keys. */
    static const char *const older[] = { "dumb", "ansi", "vt", "eterm", "emacs", "unknown" };

    if (term == NULL || *term == '\0' || is_console(term))
        return "";
    for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
        if (strncmp(term, older[i], strlen(older[i])) == 0)
            return "";
    return CONTROL_KEYS_KNOWN;
}
