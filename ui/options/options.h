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
#include "ui/options/appearance.h"
#include "ui/options/subcommands.h"

enum option_id {
    OPT_MODEL,
    OPT_CTX,
    OPT_MEMORY,
    OPT_KV,
    OPT_KV_K,
    OPT_KV_V,
    OPT_KV_DISK,
    OPT_IO,
    OPT_MIRROR,
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
    OPT_SCHEMA,
    OPT_GRAMMAR,
    OPT_CTX_SHIFT,
    OPT_DRAFT,
    OPT_DRAFT_DEPTH,
    OPT_DRAFT_ACCEPT,
    OPT_LISTEN,
    OPT_API_KEY_FILE,
    OPT_SERVER,
    OPT_CA_FILE,
    OPT_REQUEST_TIME,
    OPT_ALLOW_SETTINGS,
    OPT_IDS_FILE,
    OPT_LOGITS,
    OPT_DRAFT_LOGITS,
    OPT_GREEDY,
    OPT_TEXT,
    OPT_SORT,
    OPT_NAMES,
    OPT_KV_FILES,
    OPT_TENSORS,
    OPT_PRODUCTS,
    OPT_EXPONENTS,
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
    OPT_NO_DISK,
    OPT_BENCH_MEMORY,
    OPT_BENCH_CTX,
    OPT_BENCH_KV,
    OPT_BENCH_IO,
    OPT_BENCH_THREADS,
    OPT_BENCH_CHUNK,
    OPT_BENCH_BLOCK,
    OPT_BENCH_ISA,
    OPT_N_PROMPT,
    OPT_N_GEN,
    OPT_DEPTH,
    OPT_REPEAT,
    OPT_TIME_LIMIT,
    OPT_COLD,
    OPT_ONE,
    OPT_CSV,
    OPT_MARKDOWN,
    OPT_OUTPUT,
    OPT_COMPARE,
    OPT_OVER,
    OPT_POINTS,
    OPT_AGAINST,
    OPT_NO_MEASURE,
    OPT_BENCH_FILE,
    OPT_SWEEP_FILE,
    OPT_RECORDING,
    OPT_PAGE,
    OPT_TOUR,
    OPT_WHAT_IF,
    OPT_EXPLAIN,
    OPT_TELEMETRY,
    OPT_FORCE,
    OPT_PROMPT,
    OPT_NO_STDIN,
    OPT_STATS,
    OPT_JSON,
    OPT_QUIET,
    OPT_CONTINUE,
    OPT_OPEN,
    OPT_NO_SAVE,
    OPT_KV_SPACE,
    OPT_THEME,
    OPT_COLOR,
    OPT_GRAPH,
    OPT_ASCII,
    OPT_UTF8,
    OPT_PLAIN,
    OPT_NO_MOUSE,
    OPT_VIEW,
    OPT_BELL,
    OPT_NOTIFY,
    OPT_TITLE,
    OPT_KEYS,
    OPT_SPLIT,
    OPT_REFRESH,
    OPT_SPEED,
    OPT_ONCE,
    OPT_EXACT,
    OPT_CHUNK,
    OPT_ISA,
    OPT_BLAS,
    OPT_PACK,
    OPT_NO_URING,
    OPT_DISK_RATE,
    OPT_MIRROR_RATE,
    OPT_SYNC_FRAMES,
    OPT_COUNT_BYTES,
    OPT_HELP,
    OPT_VERSION,
    N_OPTION,
};

#define OPTIONS_NO_SPACE UINT64_MAX
#define OPTIONS_TEXTS 16 /* maximum values of an option that may be given several times */

/* The part of a measurement that a process of its own does. */
enum options_one { ONE_NOTHING, ONE_PLAN, ONE_RUN };
enum options_against { AGAINST_NOTHING, AGAINST_MMAP };

/* The values.  Texts point to what was parsed.  A field whose option was not given has the
 * value that options_default() stores. */
struct options {
    /* Sampling holds only the values that were given: see options_overlay(). */
    struct mw_chat_options chat;
    const char *stop[OPTIONS_TEXTS + 1]; /* then NULL; for chat.stop */
    struct ui_options ui;
    uint64_t memory_wish; /* the budget before it was lowered; 0: it was not */
    const char *model;
    const char *model_name; /* in the list, if the model was found by its name; else NULL */
    const char *model_lasting; /* its name for a saved chat (mw_models_lasting()), or NULL */
    const char *ids_file, *logits, *draft_logits, *text;
    uint32_t greedy;
    bool exponents; /* count the exponents of weights */
    bool products;  /* measure whether our kernels or OpenBLAS multiply faster */
    int sort;       /* enum mw_models_order */
    bool names;
    bool kv_files; /* of list */
    bool tensors, ids, special, decode;
    bool render, text_out, no_prompt;
    const char *template;
    const char *revision; /* of a repository */
    bool list_only, yes;
    bool no_disk; /* of doctor and report */
    bool no_measure;
    const char *bench, *sweep, *recording, *page; /* of report */

    /* For bench and sweep. */
    const char *list[N_OPTION]; /* KIND_LIST: the items, separated by commas; NULL: not given */
    uint32_t n_prompt, n_gen, depth, n_repeat; /* tokens; tokens; tokens; measurements */
    float draft_accept;                        /* simulated share of accepted drafts */
    uint32_t time_limit;                       /* seconds of a run; 0: none */
    bool cold, csv, markdown;
    int one;  /* enum options_one */
    int over; /* what a sweep changes: an index of the words of --over */
    uint32_t points;
    int against;                           /* enum options_against */
    const char *output[OPTIONS_TEXTS + 1]; /* then NULL */
    const char *compare;

    const char *server, *ca_file; /* that has the model, and authorities to trust; or NULL */
    const char *listen; /* of serve; NULL: the default */
    const char *api_key_file; /* of serve, and on the command line of a chat with a server */
    uint32_t request_s;                /* seconds; 0: the default */
    bool allow_settings;               /* of serve, to clients */
    bool tour;           /* of demo */
    const char *what_if; /* of plan */
    bool explain;        /* of plan */
    const char *telemetry;
    const char *schema, *grammar; /* files; NULL: any text */
    bool force; /* outputs may replace files */
    bool stats, json, quiet;
    bool last_chat;
    const char *open_chat; /* for ui_chat(): NULL: a new one; "": the last one */
    bool no_save;
    uint64_t kv_space; /* bytes of all KV files; 0: as mw_kv_limit(); OPTIONS_NO_SPACE: none */
    float speed;
    bool once, help, version;

    bool no_stdin, stdin_too; /* never read standard input; read it in any case: "-" */
    bool model_is_first;     /* the first of two positionals of run is the model */
    const char *prompt;      /* replaces arg */
    const char *arg;         /* the positional that is not the model, or NULL */
    bool given[N_OPTION];    /* on the command line or in a file */
    bool on_line[N_OPTION];  /* on the command line */
    uint32_t line[N_OPTION]; /* of the file, from 1; 0: not in the file */
    const char *skipped;     /* NULL, or a sentence in a line for each wrong line of the file */
};

enum option_kind {
    KIND_FLAG,     /* bool */
    KIND_FIXED,    /* int: min; a flag that gives another option this value */
    KIND_SWITCH,   /* int: enum mw_think; the option alone means on */
    KIND_TEXT,     /* const char *: any text */
    KIND_TEXTS,    /* const char *[]: a text of min to max bytes each time it is given */
    KIND_OPTIONAL, /* const char *: any text; "none" is NULL */
    KIND_FORMAT,   /* const char *: the name of a chat format; "none" is NULL */
    KIND_FILE,     /* const char *: a path, for completion */
    KIND_SIZE,     /* uint64_t: 512M, 2G, 50% of memory; "auto" is 0 */
    KIND_SPACE,    /* uint64_t: of a disk, 512M, 4G; "auto" is 0, "none" OPTIONS_NO_SPACE */
    KIND_RATE,     /* uint64_t: bytes per second, 20M; "none" is 0 */
    KIND_CHOICE,   /* int: index of a word in words */
    KIND_KV_ONE,   /* enum mw_kv: a word of words */
    KIND_KV,       /* kv_k and kv_v: a word of words, or one for each */
    KIND_IO,       /* enum mw_io and mmap_drop: a word of words */
    KIND_DRAFT,    /* enum mw_draft and draft_file: a word of words, or a path with / or . */
    KIND_ISA,      /* const char *: a kernel set of this CPU */
    KIND_U32,      /* uint32_t or int from min to max; with the tip "auto" this is 0 */
    KIND_COUNT,    /* the same; 32k is 32768 */
    KIND_SEED,     /* struct mw_seed: any whole number, or "random" */
    KIND_NUMBER,   /* float from min to max */
    KIND_LIST,     /* items of kind `item`, separated by commas: see options_set_item() */
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

/* How far a value reaches besides the command line, and when a running chat applies it. */
enum option_reach {
    REACH_LINE,   /* the command line only */
    REACH_FILE,   /* the configuration file; not a running chat */
    REACH_PLAN,   /* both; the new plan is shown first, and Enter applies it */
    REACH_PROMPT, /* both; with the next message, which evaluates the conversation again */
    REACH_ANSWER, /* both; with the next answer */
    REACH_TOKEN,  /* both; with the next token */
    REACH_NOW,    /* both; at once */
    N_REACH,
};
/* When a running chat applies a value: "from the next answer on".  "" for REACH_LINE. */
const char *option_reach_text(enum option_reach reach);

struct option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    bool is_hidden;   /* for tests; not in --help */
    enum option_group group;
    const char *arg;       /* "FILE"; NULL: takes none on the command line */
    const char *words;     /* all values, separated by blanks; NULL: not a list */
    const char *tips;      /* values to offer if words is NULL: see option_values() */
    const char *help;      /* without words and default, which option_help() adds */
    const char *otherwise; /* the default in words, "4096; eval: as needed"; NULL: none */
    const char *more;      /* paragraphs of /help NAME, separated by newlines; NULL: none */
    const char *asks;      /* other words that people use for it, or NULL */
    unsigned commands;     /* enum command_bit */
    enum option_kind kind;
    enum option_kind item; /* of KIND_LIST */
    size_t at;             /* offset in struct options; of KIND_LIST: of one item */
    double min, max;
    enum option_reach reach;
    const char *slash; /* its command in a chat, without the slash; NULL: only /set */
    const char *slash_also; /* other names of that command, separated by blanks; or NULL */
    const char *says;  /* a sentence about the value, which replaces "%"; NULL: "name is %" */
    const char *says_none; /* the same for no value; NULL: says.  See options_is_none() */
};
extern const struct option options_table[N_OPTION];

/* The form of a value in the file and in a chat: "FILE", "on|off". */
const char *option_form(const struct option *row);

/* Returns the values that completion offers, separated by blanks; NULL: they are not a list. */
const char *option_values(const struct option *row);

/* Write the default of a command ("eval"; NULL: the words for all commands).  Returns buf, ""
 * if there is none. */
char *option_default(const struct option *row, const char *command, char *buf, size_t n);

/* Write the help with the words and this default.  Returns buf. */
char *option_help(const struct option *row, const char *command, char *buf, size_t n);

void options_default(struct options *o);
bool options_given(const struct options *o, enum option_id id);

/* Find an option by name for the subcommands in bits; returns its id or -1. */
int options_find(const char *name, size_t len, unsigned bits);
/* Find a setting by name; returns its id or -1. */
int options_find_setting(const char *name, size_t len);
/* Say in *e that name is not a setting, and which one is like it.  Returns -1. */
int options_refuse_setting(const char *name, struct err *e);

/* Is it one of struct mw_options? */
bool option_is_of_engine(enum option_id id);
/* Can a running server change it for its clients? */
bool option_is_served(enum option_id id);

/* Is any text a value of this option, and kept as it is? */
bool option_is_text(const struct option *row);

/*
 * Check text and store it as the value of an option.  The text must outlive o.  Options without
 * a value on the command line take "on" and "off" (also yes, no, true, false, 1, 0).  Returns
 * -1 with *e, which does not name the option.
 */
int options_set(struct options *o, enum option_id id, const char *text, struct err *e);

/* Returns the number of items of a list; 1 if it was not given, and means its default. */
size_t options_items(const struct options *o, enum option_id id);
/* Store item i of a list, as the option that takes one such value would.  Does nothing if the
 * list was not given. */
void options_set_item(struct options *o, enum option_id id, size_t i);

/* Remove the values of an option that can be given several times. */
void options_clear(struct options *o, enum option_id id);

/* Write the value to buf in the form that options_set() takes; "" if there is none.  Returns
 * buf. */
char *options_print(const struct options *o, enum option_id id, char *buf, size_t n);

/* Write the value as people read it: sizes, rates and counts as all panels and sheets do,
 * "600 MiB", "20 MB/s" and "32,768"; the others as options_print().  Returns buf. */
char *options_say(const struct options *o, enum option_id id, char *buf, size_t n);

/* The same with the default of a command for a value that is not set, as options_set() takes it:
 * "auto" and not "auto: one per core, or the measured best". */
char *options_say_value(const struct options *o, enum option_id id, const char *command, char *buf,
                        size_t n);

/* "the temperature is 0.8": a value as people read it in a sentence.  Returns buf. */
char *option_sentence(const struct option *row, const char *value, char *buf, size_t n);

/* Whether a printed value means that there is none: 0, off, none, or random of a seed. */
bool options_is_none(const struct option *row, const char *value);

/* Copy the values of sampling that were given to *to; leave the others, which the model
 * recommends. */
void options_overlay(const struct options *o, struct mw_sampling *to);

#endif
