#include "config.h"

#include "ui/term/capability.h"

#include <curses.h>
#include <term.h>

static struct {
    char *text;
    size_t used, size;
} out;

static int add_byte(int c)
{
    if (out.used < out.size)
        out.text[out.used++] = (char)c;
    return c;
}

size_t capability_add(char *text, size_t used, size_t size, const char *name)
{
    const char *s = tigetstr(name);

    out.text = text;
    out.used = used;
    out.size = size;
    if (s != NULL && s != (char *)-1)
        tputs(s, 1, add_byte);
    return out.used;
}

bool capability_is_rgb(void)
{
    return tigetflag("RGB") > 0 || tigetnum("RGB") > 0;
}
