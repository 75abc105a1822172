/* See beside.h. */
#include "config.h"

#include "src/base/beside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/command.h"

#define APPLIED_MOST 80 /* parameters, and the system message */
#define ITEM_BYTES   120

static struct {
    struct {
        enum option_id id;
        char text[ITEM_BYTES];
    } applied[APPLIED_MOST];
    size_t n_applied;
    char not_applied[400]; /* a list */
    char notice[1000];
    bool is_reported;
} said;

/* Ollama's parameters.  Parameters that are not listed describe the machine, or are unknown. */
static const struct {
    const char *name;
    int id;            /* enum option_id, or -1: of the machine, without a word */
    const char *below; /* the value for negative numbers; NULL: none */
} params[] = {
    { "temperature", OPT_TEMP, NULL },
    { "top_k", OPT_TOP_K, "0" }, /* all tokens */
    { "top_p", OPT_TOP_P, NULL },
    { "min_p", OPT_MIN_P, NULL },
    { "repeat_penalty", OPT_REPEAT_PENALTY, NULL },
    { "repeat_last_n", OPT_REPEAT_LAST, "4294967295" }, /* all of the context */
    { "num_ctx", OPT_CTX, NULL },
    { "num_predict", OPT_PREDICT, "0" }, /* until the context is full */
    { "stop", OPT_STOP, NULL },
    { "seed", OPT_SEED, NULL },
    { "f16_kv", -1, NULL },
    { "low_vram", -1, NULL },
    { "main_gpu", -1, NULL },
    { "num_batch", -1, NULL },
    { "num_gpu", -1, NULL },
    { "num_thread", -1, NULL },
    { "numa", -1, NULL },
    { "use_mlock", -1, NULL },
    { "use_mmap", -1, NULL },
};

/* Add an item to a list.  One that does not fit is left out. */
static void add(char *list, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *list, size_t n, const char *fmt, ...)
{
    size_t used = strlen(list);
    const char *comma = used > 0 ? ", " : "";
    char item[ITEM_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(item, sizeof item, fmt, ap);
    va_end(ap);
    if (used + strlen(comma) + strlen(item) < n)
        snprintf(list + used, n - used, "%s%s", comma, item);
}

#define ADD(list, ...) add(list, sizeof(list), __VA_ARGS__)

/* Note an option that has the value of the model.  Returns its text, which the caller writes. */
static char *add_applied(enum option_id id)
{
    size_t i = said.n_applied < APPLIED_MOST ? said.n_applied++ : APPLIED_MOST - 1;

    said.applied[i].id = id;
    return said.applied[i].text;
}

/* Is the option one that the command takes from a model?  A server takes all of them as defaults of
 * requests, also those that it has no option for. */
static bool takes(unsigned command, enum option_id id)
{
    return (command & (id == OPT_CTX ? CMD_ANSWERS | CMD_PLAN : CMD_ANSWERS)) != 0;
}

static void apply_param(struct options *o, const struct mw_beside_param *p, unsigned command,
                        const bool *is_users)
{
    const char *value = p->value;
    struct err ignored = ERR_INIT;
    size_t i = 0;

    while (i < sizeof params / sizeof params[0] && strcmp(params[i].name, p->name) != 0)
        i++;
    if (i < sizeof params / sizeof params[0] && params[i].id < 0)
        return;
    if (i == sizeof params / sizeof params[0]) {
        if ((command & CMD_ANSWERS) != 0)
            ADD(said.not_applied, "%.40s %.40s", p->name, p->value);
        return;
    }
    if (!takes(command, (enum option_id)params[i].id) || is_users[params[i].id])
        return;
    if (value[0] == '-' && params[i].below != NULL)
        value = params[i].below;
    if (options_set(o, (enum option_id)params[i].id, value, &ignored) == 0)
        snprintf(add_applied((enum option_id)params[i].id), ITEM_BYTES,
                 params[i].id == OPT_STOP ? "%s \"%.40s\"" : "%s %.40s",
                 options_table[params[i].id].name, value);
    else
        ADD(said.not_applied, "%s \"%.40s\", which is not a valid value", p->name, p->value);
}

const char *beside_notice(void)
{
    char applied[400] = ""; /* a list */

    for (size_t i = 0; i < said.n_applied; i++)
        ADD(applied, "%s", said.applied[i].text);
    snprintf(said.notice, sizeof said.notice, "%s%s%s%s%s%s",
             applied[0] != '\0' ? "Ollama's settings for this model apply where you gave none: "
                                : "",
             applied, applied[0] != '\0' ? "." : "",
             said.not_applied[0] == '\0' ? ""
             : applied[0] != '\0'        ? " Not applied: "
                                         : "Not applied of the parts beside the model's "
                                           "weights: ",
             said.not_applied, said.not_applied[0] != '\0' ? "." : "");
    return said.notice;
}

void beside_apply(struct options *o, const struct mw_beside *b, unsigned command)
{
    bool answers = (command & CMD_ANSWERS) != 0;
    bool is_users[N_OPTION];
    char words[100];

    memset(&said, 0, sizeof said);
    memcpy(is_users, o->given, sizeof is_users);
    mw_parts_text(b->parts & (answers ? ~(unsigned)MW_PART_TEMPLATE : MW_PARTS_LOST), words,
                  sizeof words);
    if (words[0] != '\0')
        ADD(said.not_applied, "%s", words);
    for (size_t i = 0; i < b->n_param; i++)
        apply_param(o, &b->param[i], command, is_users);
    if (b->system != NULL && answers && !is_users[OPT_SYSTEM]) {
        o->chat.system = b->system;
        o->given[OPT_SYSTEM] = true;
        snprintf(add_applied(OPT_SYSTEM), ITEM_BYTES, "system message");
    }
    if (answers && (b->parts & MW_PART_TEMPLATE) != 0)
        ADD(said.not_applied, "template (it is not Jinja; the model's own format is used)");
}

void beside_replaced(enum option_id id)
{
    size_t n = 0;

    for (size_t i = 0; i < said.n_applied; i++)
        if (said.applied[i].id != id)
            said.applied[n++] = said.applied[i];
    said.n_applied = n;
}

void beside_report(const struct options *o)
{
    const char *notice = beside_notice();

    if (!o->quiet && !said.is_reported && notice[0] != '\0')
        report_notice(notice, strlen(notice));
    said.is_reported = true;
}
