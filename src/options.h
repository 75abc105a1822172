/*
 * options.h - the options of all subcommands, in one table.
 *
 * A row has the name of an option, its argument, one line of help, the subcommands that take
 * it, how to check its value, and where to store it.  Parsing, --help, usage errors,
 * completions and the lists in man pages come from these rows, so they always agree.
 *
 * To add an option: a name in enum option_id, a field in struct options, a row in
 * options_table.c, `make update-tables`.
 */
#ifndef MEMWALL_SRC_OPTIONS_H
#define MEMWALL_SRC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

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
    OPT_TENSORS,
    OPT_PRODUCTS,
    OPT_IDS,
    OPT_SPECIAL,
    OPT_DECODE,
    OPT_CHAT,
    OPT_TEXT_OUT,
    OPT_TEMPLATE,
    OPT_NO_PROMPT,
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
    OPT_SYNC_FRAMES,
    OPT_COUNT_BYTES,
    OPT_HELP,
    OPT_VERSION,
    N_OPTION,
};

#define OPTIONS_TEXTS 16 /* maximum values of an option that may be given several times */

/* The values.  Texts point into the argument vector.  options_given() reports whether an
 * option was given; otherwise it has the value that options_default() stores. */
struct options {
    bool help, version;
    const char *model;
    uint32_t ctx;
    const char *memory; /* syntax is checked; "50%" is resolved when the machine is read */
    const char *kv, *kv_k, *kv_v, *io;
    uint32_t threads;
    uint32_t predict;
    double temp, top_p, min_p, repeat_penalty;
    uint32_t top_k, repeat_last;
    uint64_t seed;
    const char *system, *format;
    bool raw;
    int think; /* enum mw_think */
    const char *stop[OPTIONS_TEXTS + 1]; /* then NULL */
    bool ctx_shift;
    const char *ids_file, *logits, *text;
    uint32_t greedy;
    bool products; /* measure whether our kernels or OpenBLAS multiply faster */
    bool tensors, ids, special, decode;
    bool chat, text_out, no_prompt;
    const char *template;
    const char *telemetry;
    bool force; /* outputs may replace files */
    bool stats, json, quiet;
    bool last_chat;
    const char *open_chat;
    bool no_save;
    const char *theme;
    int color, graph, view; /* index of the word in the row's choices */
    bool ascii, utf8, plain, no_mouse;
    uint32_t split, refresh;
    double speed;
    bool once;
    bool exact;
    uint32_t chunk;
    const char *isa;
    int blas; /* enum mw_blas */
    bool no_uring, sync_frames, count_bytes;

    const char *arg;        /* the positional that is not the model, or NULL */
    bool given[N_OPTION];   /* on the command line or in a file */
    bool on_line[N_OPTION]; /* on the command line */
};

enum option_kind {
    KIND_FLAG,   /* bool: true */
    KIND_SET,    /* int: the row's min */
    KIND_TEXT,   /* const char *: any text */
    KIND_TEXTS,  /* const char *[]: a text of min to max bytes per time it is given */
    KIND_FILE,   /* const char *: a path, for completion */
    KIND_SIZE,   /* const char *: "auto", 512M, 2G, 50% */
    KIND_WORD,   /* const char *: a word of choices */
    KIND_CHOICE, /* int: index of a word in choices */
    KIND_U32,    /* uint32_t from min to max */
    KIND_COUNT,  /* uint32_t from min to max; 32k is 32768 */
    KIND_U64,    /* uint64_t */
    KIND_NUMBER, /* double from min to max */
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

struct option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    bool is_hidden;   /* for tests; not in --help */
    enum option_group group;
    const char *arg;     /* "FILE"; NULL: takes none */
    const char *choices; /* words separated by blanks, or NULL */
    const char *help;
    unsigned commands; /* enum command_bit of command.h */
    enum option_kind kind;
    size_t at; /* offset in struct options */
    double min, max;
};
extern const struct option options_table[N_OPTION];

struct command;

void options_default(struct options *o);
bool options_given(const struct options *o, enum option_id id);

/* Check text and store it as the value of an option; NULL for one without a value.  The text
 * must outlive o.  Returns -1 with *e naming the option. */
int options_set(struct options *o, enum option_id id, const char *text, struct err *e);

/* Find the option of that name for the subcommands in bits; returns its id or -1. */
int options_find(const char *name, size_t len, unsigned bits);

/*
 * Parse the arguments of a subcommand: --name VALUE, --name=VALUE, -n VALUE, -nVALUE and
 * -qn VALUE; "--" ends the options.  Returns -1 with *e, a message for the user.
 */
int options_parse(struct options *o, const struct command *c, int argc, char **argv,
                  struct err *e);

/* Check that everything the subcommand requires was given, by file or command line. */
int options_check(const struct options *o, const struct command *c, struct err *e);

#endif
