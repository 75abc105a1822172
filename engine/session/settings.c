#include "config.h"

#include "engine/session/settings.h"

#include <stdlib.h>
#include <string.h>

static size_t string_bytes(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Copy text to *at and advance *at.  NULL stays NULL. */
static const char *put_string(char **at, const char *text)
{
    size_t n = string_bytes(text);
    char *copy = *at;

    if (text == NULL)
        return NULL;
    memcpy(copy, text, n);
    *at += n;
    return copy;
}

/* Count the stop strings and their bytes. */
static int count_stops(const char *const *stop, size_t *n, size_t *bytes, struct err *e)
{
    *n = *bytes = 0;
    for (; stop != NULL && stop[*n] != NULL; ++*n) {
        size_t len = strlen(stop[*n]);

        if (len == 0 || len > MW_STOP_BYTES)
            return err_set(e, ERR_ARGUMENT, "a stop string must have 1 to %d bytes, not %zu",
                           MW_STOP_BYTES, len);
        *bytes += len + 1;
    }
    return 0;
}

int settings_copy(struct settings *out, const struct mw_chat_options *o, struct err *e)
{
    size_t n_stop, bytes, n_bias = o->n_logit_bias;
    struct mw_logit_bias *bias;
    const char **stop;
    char *at;

    if (count_stops(o->stop, &n_stop, &bytes, e) != 0)
        return -1;
#define NO_TEXT(...)
#define COUNT_TEXT(name, reach)        bytes += string_bytes(o->name);
#define COUNT_ENGINE_TEXT(name, reach) bytes += string_bytes(o->engine.name);
    MW_CHAT_OPTION_FIELDS(NO_TEXT, COUNT_TEXT, NO_TEXT)
    MW_OPTION_FIELDS(NO_TEXT, COUNT_ENGINE_TEXT)
    stop = malloc((n_stop + 1) * sizeof *stop + n_bias * sizeof *bias + bytes);
    if (stop == NULL)
        return err_memory(e, "the options");
    out->block = stop;
    out->o = *o;
    out->o.stop = stop;
    bias = (struct mw_logit_bias *)(stop + n_stop + 1);
    out->o.logit_bias = n_bias > 0 ? memcpy(bias, o->logit_bias, n_bias * sizeof *bias) : NULL;
    at = (char *)(bias + n_bias);
    for (size_t i = 0; i < n_stop; i++)
        stop[i] = put_string(&at, o->stop[i]);
    stop[n_stop] = NULL;
#define COPY_TEXT(name, reach)        out->o.name = put_string(&at, o->name);
#define COPY_ENGINE_TEXT(name, reach) out->o.engine.name = put_string(&at, o->engine.name);
    MW_CHAT_OPTION_FIELDS(NO_TEXT, COPY_TEXT, NO_TEXT)
    MW_OPTION_FIELDS(NO_TEXT, COPY_ENGINE_TEXT)
    return 0;
}

void settings_free(struct settings *s)
{
    free(s->block);
    *s = (struct settings){ .block = NULL };
}

void settings_without(const struct mw_chat_options *now, const struct mw_chat_options *refused,
                      struct settings *later)
{
    struct mw_chat_options o = later->o;
    struct err ignored = ERR_INIT;
    struct settings rest;

    mw_options_without(now, refused, &o);
    if (settings_copy(&rest, &o, &ignored) != 0)
        return;
    settings_free(later);
    *later = rest;
}
