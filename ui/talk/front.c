#include "config.h"

#include "ui/talk/front.h"

#include <stdio.h>
#include <string.h>

#include "ui/store/store.h"
#include "ui/words/clean.h"

void front_vsay(const struct talk_front *f, enum talk_say kind, const char *fmt, va_list ap)
{
    char text[2048], clean[4096];

    vsnprintf(text, sizeof text, fmt, ap);
    clean_text(clean, sizeof clean, text, strlen(text));
    f->say(f->ctx, kind, clean, STORE_NO_ITEM);
}

void front_say(const struct talk_front *f, enum talk_say kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    front_vsay(f, kind, fmt, ap);
    va_end(ap);
}

void front_report(const struct talk_front *f, const struct err *e)
{
    char text[700];

    err_text(e, text, sizeof text);
    front_say(f, SAY_ERROR, "%s", text);
}
