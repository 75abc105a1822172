/*
 * subcommands.h - the names of the subcommands, for the rows of the table of options.
 */
#ifndef MEMWALL_UI_OPTIONS_SUBCOMMANDS_H
#define MEMWALL_UI_OPTIONS_SUBCOMMANDS_H

/* One line per subcommand, in the order in which --help lists them.  A line defines the bit
 * CMD_NAME here, and in src/command.h it declares cmd_name and puts it into command_table. */
/* clang-format off */
#define COMMANDS(X) \
    X(CHAT, chat) \
    X(DEMO, demo) \
    X(RUN, run) \
    X(SERVE, serve) \
    X(LIST, list) \
    X(PULL, pull) \
    X(PLAN, plan) \
    X(DOCTOR, doctor) \
    X(BENCH, bench) \
    X(SWEEP, sweep) \
    X(REPORT, report) \
    X(TRIED, tried) \
    X(EVAL, eval) \
    X(REPLAY, replay) \
    X(INSPECT, inspect) \
    X(TOKENIZE, tokenize) \
    X(COMPLETIONS, completions)

enum command_index {
#define X(NAME, name) COMMAND_##NAME,
    COMMANDS(X)
#undef X
    N_COMMAND
};

/* Subcommands as bits: a row names all that take the option. */
enum command_bit {
#define X(NAME, name) CMD_##NAME = 1 << COMMAND_##NAME,
    COMMANDS(X)
#undef X
    CMD_EVERY = (1 << N_COMMAND) - 1,
    CMD_ENGINE = CMD_CHAT | CMD_RUN | CMD_SERVE | CMD_PLAN | CMD_EVAL, /* load a model and compute */
    CMD_PLANS = CMD_ENGINE | CMD_LIST | CMD_PULL | CMD_DOCTOR | CMD_REPORT, /* show or use a plan */
    CMD_TALK = CMD_CHAT | CMD_RUN,
    CMD_ANSWERS = CMD_TALK | CMD_SERVE, /* with values of the sampler */
    CMD_MEASURES = CMD_BENCH | CMD_SWEEP, /* measure points in processes of their own */
    CMD_SCREEN = CMD_CHAT | CMD_DEMO | CMD_REPLAY,
};
/* clang-format on */

#endif
