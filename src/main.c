/*
 * main.c - find the subcommand and read its options.
 *
 * `memwall COMMAND …`.  Without a command the arguments belong to chat, so that
 * `memwall -m MODEL` and `memwall MODEL` start a chat.
 */
#include "config.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/lookalike.h"
#include "engine/base/near.h"
#include "src/base/beside.h"
#include "src/base/paths.h"
#include "src/base/variables.h"
#include "src/command.h"
#include "src/command_line.h"
#include "src/models/models.h"
#include "src/other_words.h"
#include "src/settings.h"
#include "src/start.h"
#include "ui/options/config_file.h"
#include "ui/ui.h"

static bool is_option(const char *arg, const char *letter, const char *name)
{
    return arg != NULL && (strcmp(arg, letter) == 0 || strcmp(arg, name) == 0);
}

/* May a first word that is not a command be a model?  A mistyped command is not. */
static bool may_be_model(const char *arg)
{
    return strpbrk(arg, "/.:") != NULL || access(arg, F_OK) == 0;
}

/* Mistakes in the configuration file do not keep the screen from starting: it shows them. */
static bool skips_mistakes(const struct command *c, const struct options *o)
{
    struct ui_options look;

    settings_screen(o, &look);
    return (c->bit & CMD_SCREEN) != 0 && !o->once && !o->json && isatty(STDOUT_FILENO) &&
           (look.plain || ui_can_draw());
}

/* A configuration file that was read. */
struct config {
    struct paths paths;
    bool is_there; /* without a home directory there is no file */
    bool skips;
    struct config_skipped skipped;
    char *text;
};

/* Read the configuration file before the command line, so that the command line wins. */
static int read_config(struct config *f, const struct command *c, struct options *o)
{
    struct err e = ERR_INIT;

    f->skips = skips_mistakes(c, o);
    options_default(o);
    /* Commands that need the folders report that they are missing. */
    f->is_there = c->reads_config && paths_find(&f->paths, &e) == 0;
    if (f->is_there && config_file_read(o, c->bit, f->paths.config_file, &f->text,
                                        f->skips ? &f->skipped : NULL, &e) != 0)
        return report_error(&e);
    return EXIT_OK;
}

/* The other commands with a screen show the lines themselves. */
static void report_skipped(const char *line)
{
    while (*line != '\0') {
        size_t n = strcspn(line, "\n");

        report_notice(line, n);
        line += n + (line[n] == '\n');
    }
}

/* Check the names that the command line has left in force. */
static int check_config(struct config *f, const struct command *c, struct options *o)
{
    struct setting_folders in = { f->paths.config_dir, NULL };
    struct err e = ERR_INIT;

    if (!f->is_there)
        return EXIT_OK;
    if (c->needs_model && !c->resolves && o->line[OPT_MODEL] != 0 && o->server == NULL)
        in.models = models_places();
    if (config_file_check(o, f->paths.config_file, &in, f->skips ? &f->skipped : NULL, &e) != 0)
        return report_error(&e);
    o->skipped = f->skipped.text;
    if (c->bit == CMD_REPLAY)
        report_skipped(o->skipped);
    return EXIT_OK;
}

/* Read what was not read for --help: the configuration file, then the command line again. */
static int run_with(const struct command *c, struct options *o, struct config *f, int argc,
                    char **argv)
{
    int code = read_config(f, c, o);
    struct err e = ERR_INIT;

    if (code == EXIT_OK && command_line_parse(o, c, argc, argv, &e) != 0)
        return report_usage(c, &e);
    if (code == EXIT_OK)
        code = check_config(f, c, o);
    if (code == EXIT_OK && command_line_check(o, c, &e) != 0)
        return report_usage(c, &e);
    if (code == EXIT_OK && c->needs_model && !c->resolves && o->model != NULL &&
        o->server == NULL /* else it is the name of a model there */ &&
        !(c->bit == CMD_CHAT && settings_chat_has_model(o)))
        code = models_resolve(o, c->bit);
    if (code == EXIT_OK && c->bit != CMD_CHAT) /* the screen shows it */
        beside_report(o);
    return code == EXIT_OK ? c->run(o) : code;
}

static int run_command(const struct command *c, int argc, char **argv)
{
    struct config config = { .text = NULL };
    struct err e = ERR_INIT;
    struct options o;
    int code;

    options_default(&o);
    if (command_line_parse(&o, c, argc, argv, &e) != 0)
        return report_usage(c, &e);
    if (o.help) {
        help_command(c);
        return EXIT_OK;
    }
    if (o.version) {
        help_version();
        return EXIT_OK;
    }
    if (c->bit != CMD_COMPLETIONS) /* shells run it at their start */
        ui_control_keys();
    code = run_with(c, &o, &config, argc, argv);
    free(config.text);
    return code;
}

/* Report a word that is not a command. */
static int refuse_word(const char *word)
{
    char note[60], plain[60], model[120];
    struct near near = { .word = plain };
    const struct command *c;
    struct err e = ERR_INIT;

    if (command_line_check_dash(&cmd_chat, word, &e) != 0)
        return report_usage(NULL, &e);
    snprintf(plain, sizeof plain, "%s", word);
    near.len = lookalike_plain(plain, strlen(plain));
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        near_try(&near, c->name);
    if (other_words_command(plain) != NULL)
        near.name = other_words_command(plain);
    lookalike_note(word, note, sizeof note);
    if (other_words_answer(plain) != NULL)
        err_set(&e, ERR_ARGUMENT, "%s", other_words_answer(plain));
    else if (near.name != NULL)
        err_set(&e, ERR_ARGUMENT,
                "there is no command \"%.60s\"%s; did you mean \"memwall %s\"?", word, note,
                near.name);
    else if (models_similar(plain, model, sizeof model))
        err_set(&e, ERR_ARGUMENT,
                "\"%.60s\" is neither a command nor a file%s; did you mean \"memwall -m %s\"?",
                word, note, model);
    else
        err_set(&e, ERR_ARGUMENT,
                "\"%.60s\" is neither a command nor a file%s; -m takes names of models", word,
                note);
    return report_usage(NULL, &e);
}

/* memwall help [COMMAND] */
static int show_help(const char *name)
{
    const struct command *c = name != NULL ? command_named(name) : NULL;

    if (name != NULL && c == NULL)
        return refuse_word(name);
    if (c != NULL)
        help_command(c);
    else
        help_program();
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    const struct command *c = NULL;

    argc--;
    argv++;
    if (argc == 1 && is_option(argv[0], "-h", "--help")) {
        help_program();
        return EXIT_OK;
    }
    if (argc == 1 && is_option(argv[0], "-V", "--version")) {
        help_version();
        return EXIT_OK;
    }
    if (argc > 0 && strcmp(argv[0], "help") == 0)
        return show_help(argv[1]);
    if (argc > 0 && argv[0][0] != '-')
        c = command_named(argv[0]);
    if (c != NULL) {
        argc--;
        argv++;
    } else if (argc > 0 && argv[0][0] != '-' && !may_be_model(argv[0])) {
        return refuse_word(argv[0]);
    } else {
        c = command_named("chat");
    }
    if (c == NULL) {
        help_program();
        return EXIT_USAGE;
    }
    return run_command(c, argc, argv);
}

static struct sigaction bus_before;

/* If a mapped model file is truncated, end the answer instead of the program. */
static void on_bus(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code == BUS_ADRERR && mw_mapping_repair(info->si_addr))
        return;
    sigaction(sig, &bus_before, NULL);
    if (info->si_code <= 0) /* sent by a process: no instruction will fault again */
        raise(sig);
}

static int run_all(int argc, char **argv)
{
    struct sigaction bus = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };

    variables_clean();
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, &bus_before);
    /* Only the character set: a decimal comma would break every number read or written. */
    setlocale(LC_CTYPE, "");
    return report_end(run(argc, argv));
}

int main(int argc, char **argv)
{
    return start_process(run_all, argc, argv);
}
