/*
 * options.h - everything that can be set, in one table.
 *
 * A row has the name of an option, its argument, its help, the subcommands that take it, how to
 * check its value, and where to store it.  The command line, --help, completions, man pages,
 * the configuration file, /set and the commands of the chat that have a value all come from
 * these rows, so they always agree.
 *
 * A setting is an option that the configuration file knows, too: all but REACH_LINE.
 *
 * To add an option: a name in enum option_id, a row in table.c, `make update-tables`, and a
 * field in struct options unless the engine or the screen has one already.
 */
#ifndef MEMWALL_UI_OPTIONS_OPTIONS_H
#define MEMWALL_UI_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/options/subcommands.h"
#include "ui/ui.h"

enum option_id {
    OPT_MODEL,
    OPT_CTX,
    OPT_MEMORY,
    OPT_KV,
    OPT_KV_K,
    OPT_KV_V,
    OPT_IO,
    OPT_THREADS,
    OPT_PREDICT,
    OPT_TEMP,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_MIN_P,
    OPT_REPEAT_PENALTY,
    OPT_REPEAT_LAST,
    OPT_SEED,
    OPT_SYSTEM,
    OPT_FORMAT,
    OPT_RAW,
    OPT_THINK,
    OPT_NO_THINK,
    OPT_STOP,
    OPT_CTX_SHIFT,
    OPT_IDS_FILE,
    OPT_LOGITS,
    OPT_GREEDY,
    OPT_TEXT,
    OPT_SORT,
    OPT_NAMES,
    OPT_TENSORS,
    OPT_PRODUCTS,
    OPT_IDS,
    OPT_SPECIAL,
    OPT_DECODE,
    OPT_CHAT,
    OPT_TEXT_OUT,
    OPT_TEMPLATE,
    OPT_NO_PROMPT,
    OPT_REVISION,
    OPT_LIST,
    OPT_YES,
    OPT_TELEMETRY,
    OPT_FORCE,
    OPT_STATS,
    OPT_JSON,
    OPT_QUIET,
    OPT_CONTINUE,
    OPT_OPEN,
    OPT_NO_SAVE,
    OPT_THEME,
    OPT_COLOR,
    OPT_GRAPH,
    OPT_ASCII,
    OPT_UTF8,
    OPT_PLAIN,
    OPT_NO_MOUSE,
    OPT_VIEW,
    OPT_SPLIT,
    OPT_REFRESH,
    OPT_SPEED,
    OPT_ONCE,
    OPT_EXACT,
    OPT_CHUNK,
    OPT_ISA,
    OPT_BLAS,
    OPT_NO_URING,
    OPT_DISK_RATE,
    OPT_SYNC_FRAMES,
    OPT_COUNT_BYTES,
    OPT_HELP,
    OPT_VERSION,
    N_OPTION,
};

#define OPTIONS_TEXTS 16 /* maximum values of an option that may be given several times */

/* The values.  Texts point to what was parsed.  A field whose option was not given has the
 * value that options_default() stores. */
struct options {
    /* Sampling holds only the values that were given: see options_overlay(). */
    struct mw_chat_options chat;
    const char *stop[OPTIONS_TEXTS + 1]; /* then NULL; for chat.stop */
    struct ui_options ui;
    const char *model;
    const char *ids_file, *logits, *text;
    uint32_t greedy;
    bool products; /* measure whether our kernels or OpenBLAS multiply faster */
    int sort; /* enum mw_models_order */
    bool names;
    bool tensors, ids, special, decode;
    bool render, text_out, no_prompt;
    const char *template;
    const char *revision; /* of a repository */
    bool list_only, yes;
    const char *telemetry;
    bool force; /* outputs may replace files */
    bool stats, json, quiet;
    bool last_chat;
    const char *open_chat; /* for ui_chat(): NULL: a new one; "": the last one */
    bool no_save;
    float speed;
    bool once, help, version;

    const char *arg;        /* the positional that is not the model, or NULL */
    bool given[N_OPTION];   /* on the command line or in a file */
    bool on_line[N_OPTION]; /* on the command line */
};

enum option_kind {
    KIND_FLAG,     /* bool */
    KIND_FIXED,    /* int: min; a flag that gives another option this value */
    KIND_SWITCH,   /* int: enum mw_think; the option alone means on */
    KIND_TEXT,     /* const char *: any text */
    KIND_TEXTS,    /* const char *[]: a text of min to max bytes each time it is given */
    KIND_OPTIONAL, /* const char *: any text; "none" is NULL */
    KIND_FILE,     /* const char *: a path, for completion */
    KIND_SIZE,     /* uint64_t: 512M, 2G, 50% of memory; "auto" is 0 */
    KIND_RATE,     /* uint64_t: bytes per second, 20M; "none" is 0 */
    KIND_CHOICE,   /* int: index of a word in words */
    KIND_KV,       /* enum mw_kv of keys and of values: a word of words, or one for each */
    KIND_IO,       /* enum mw_io and mmap_drop: a word of words */
    KIND_ISA,      /* const char *: a kernel set of this CPU */
    KIND_U32,      /* uint32_t or int from min to max */
    KIND_COUNT,    /* the same; 32k is 32768 */
    KIND_U64,      /* uint64_t */
    KIND_NUMBER,   /* float from min to max */
};

enum option_group {
    GROUP_MODEL,
    GROUP_ANSWER,
    GROUP_EVAL,
    GROUP_OUTPUT,
    GROUP_SCREEN,
    GROUP_ADVANCED,
    N_GROUP,
};
const char *option_group_title(enum option_group g);

/* Where a value can be given besides the command line, and how a running chat applies it. */
enum option_reach {
    REACH_LINE,   /* the command line only */
    REACH_FILE,   /* the configuration file; a running chat keeps its value */
    REACH_ANSWER, /* and a running chat: from the next answer on */
    REACH_PLAN,   /* and a running chat: a new plan, which is shown first */
    REACH_SCREEN, /* and a running chat: at once */
    REACH_MODEL,  /* and a running chat: opens another model */
};

struct option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    bool is_hidden;   /* for tests; not in --help */
    enum option_group group;
    const char *arg;   /* "FILE"; NULL: takes none on the command line */
    const char *words; /* the values, separated by blanks; NULL: others */
    const char *tips;  /* values that completion offers; NULL: words */
    const char *help;
    const char *otherwise; /* the default in words; NULL: none */
    unsigned commands;     /* enum command_bit */
    enum option_kind kind;
    size_t at; /* offset in struct options */
    double min, max;
    enum option_reach reach;
    const char *slash; /* its command in a chat, without the slash; NULL: only /set */
    /* A sentence about the value, which replaces "%"; and one for 0, false or no text.  NULL:
     * "name is %". */
    const char *says, *says_none;
};
extern const struct option options_table[N_OPTION];

/* Write the help with the default in parentheses.  Returns buf. */
char *options_help(const struct option *row, char *buf, size_t n);

void options_default(struct options *o);
bool options_given(const struct options *o, enum option_id id);

/* Find an option by name for the subcommands in bits; returns its id or -1. */
int options_find(const char *name, size_t len, unsigned bits);
/* Find a setting by name; returns its id or -1. */
int options_find_setting(const char *name, size_t len);

/*
 * Check text and store it as the value of an option.  The text must outlive o.  Options without
 * a value on the command line take "yes" and "no" (also on, off, true, false, 1, 0).  Returns
 * -1 with *e, which does not name the option.
 */
int options_set(struct options *o, enum option_id id, const char *text, struct err *e);

/* Remove the values of an option that can be given several times. */
void options_clear(struct options *o, enum option_id id);

/* Copy the values of sampling that were given to *to; leave the others, which the model
 * recommends. */
void options_overlay(const struct options *o, struct mw_sampling *to);

#endif
