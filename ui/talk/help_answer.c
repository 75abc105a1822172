#include "config.h"

#include "ui/talk/help_answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memwall.h"
#include "ui/talk/help_find.h"

#define GUIDE_NAME  "memwall guide"
#define GUIDE_ARCH  "gemma4"
#define GUIDE_PARAM 20000000 /* it has fewer */

struct text {
    char *s;
    size_t used, size;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->s + t->used, t->size - t->used, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->used += (size_t)n < t->size - t->used ? (size_t)n : t->size - t->used - 1;
}

bool help_is_guide(const struct mw_model_info *info)
{
    return strcmp(info->name, GUIDE_NAME) == 0 && strcmp(info->arch, GUIDE_ARCH) == 0 &&
           info->n_param < GUIDE_PARAM;
}

static void put_option_name(struct text *t, const struct option *o)
{
    put(t, "`--%s%s%s`", o->name, o->arg == NULL ? "" : " ", o->arg == NULL ? "" : o->arg);
    if (o->letter != 0)
        put(t, " or `-%c`", o->letter);
}

/* The subcommands that take an option, unless the chat does. */
static void put_takers(struct text *t, const struct option *o)
{
#define X(NAME, name) { CMD_##NAME, #name },
    static const struct {
        unsigned bit;
        const char *name;
    } commands[] = { COMMANDS(X) };
#undef X
    const char *before = " of memwall ";

    for (size_t i = 0; i < N_COMMAND && (o->commands & CMD_CHAT) == 0; i++)
        if ((o->commands & commands[i].bit) != 0) {
            put(t, "%s%s", before, commands[i].name);
            before = ", ";
        }
}

static void put_name(struct text *t, const struct help_entry *e)
{
    switch (e->kind) {
    case HELP_SLASH:
        put(t, "`/%s%s%s`", e->name, e->args[0] != '\0' ? " " : "", e->args);
        break;
    case HELP_OPTION:
        put_option_name(t, e->option);
        put_takers(t, e->option);
        break;
    case HELP_KEY: put(t, "%s", e->name); break;
    case HELP_NOTE:
        put(t, "\"%s\" %s %s", e->name,
            strcmp(e->panel, "marks") == 0 ? "among the" : "in the panel", e->panel);
        break;
    case HELP_SUBCOMMAND: put(t, "`memwall %s`", e->name); break;
    }
}

/* Write what the help of a command has about a setting.  Nothing is written if that is empty.
 */
static void put_aspect(struct text *t, const struct help_entry *e, enum aspect aspect)
{
    const struct option *o = e->option;
    char value[200];

    if (o == NULL)
        return;
    switch (aspect) {
    case ASPECT_ALL:
    case N_ASPECT: break;
    case ASPECT_APPLIES:
        if (o->reach > REACH_FILE)
            put(t, " A running chat applies it %s, without a restart.",
                option_reach_text(o->reach));
        else if (o->reach == REACH_FILE)
            put(t, " It applies %s.", option_reach_text(o->reach));
        break;
    case ASPECT_DEFAULT:
        if (option_default(o, "chat", value, sizeof value)[0] != '\0')
            put(t, " Default: %s.", value);
        break;
    case ASPECT_VALUES:
        if (o->words != NULL || o->tips != NULL)
            put(t, " %s: %s.", o->words != NULL ? "Values" : "Examples", option_values(o));
        break;
    case ASPECT_KEEP:
        if (o->reach != REACH_LINE)
            put(t, " To keep it: `/set %s %s`.", o->name, option_form(o));
        break;
    }
}

/* Write paragraphs.  Those of subcommands have lines that are broken for a terminal, and an
 * empty line between them. */
static void put_more(struct text *t, const struct help_entry *e)
{
    bool is_broken = e->kind == HELP_SUBCOMMAND;

    bool begins = true;

    for (const char *s = e->more; *s != '\0';) {
        size_t n = strcspn(s, "\n");

        if (n > 0)
            put(t, "%s%.*s", begins ? "\n\n" : " ", (int)n, s);
        begins = n == 0 || !is_broken;
        s += n + (s[n] == '\n');
    }
}

static void put_entry(struct text *t, const struct help_entry *e)
{
    put_name(t, e);
    put(t, " - %s.", e->text);
    for (int a = 1; a < N_ASPECT; a++)
        put_aspect(t, e, (enum aspect)a);
    if (e->kind == HELP_SLASH && e->option != NULL) {
        put(t, " At the start: ");
        put_option_name(t, e->option);
        put(t, ".");
    }
    if (e->more != NULL)
        put_more(t, e);
}

/* Returns false if the entry has nothing about the part that is asked for. */
static bool put_found(struct text *t, const struct found *f)
{
    size_t before;

    put(t, HELP_ANSWER_SAYS);
    if (f->aspect != ASPECT_ALL && f->other == NULL) {
        put_name(t, f->entry);
        put(t, " -");
        before = t->used;
        put_aspect(t, f->entry, f->aspect);
        return t->used > before;
    }
    put_entry(t, f->entry);
    if (f->other != NULL) {
        put(t, "\n\n");
        put_entry(t, f->other);
    }
    return true;
}

bool help_answer(const struct ui_subcommand *subcommands, const char *const question[],
                 size_t n, char buf[HELP_ANSWER_BYTES])
{
    struct text t = { buf, 0, HELP_ANSWER_BYTES };
    struct found f;
    struct help_list l;
    bool is_known;

    if (!help_list_make(&l, subcommands))
        return false;
    f = help_find(&l, question, n);
    is_known = f.entry != NULL && put_found(&t, &f);
    help_list_free(&l);
    return is_known;
}
