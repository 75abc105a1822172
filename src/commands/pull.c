/*
 * memwall pull: fetch a model from a hub.
 *
 * The models of the repository are listed with what they would do here.  One is chosen: by its
 * name, by the user, or with --yes by this program.  Then it is fetched.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/lookalike.h"
#include "src/base/progress.h"
#include "src/base/signals.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/models/hub.h"
#include "src/models/pull_print.h"
#include "src/settings.h"
#include "ui/words/clean.h"
#include "ui/words/quote.h"

#define LINE_EVERY_S 10 /* without a terminal, progress is a line so often */
#define WAIT_EVERY_S 60 /* the same for a long pause */
#define WAIT_SHORT_S 2  /* a shorter pause is not worth a line */

struct pull {
    const struct options *o;
    struct mw_hub hub;
    struct mw_pull *list;
    struct limits_store limits;
    struct progress progress;
    bool is_started, is_checking;
    double line_s;   /* when the last line of progress was printed */
    uint32_t wait_s; /* that are left of a pause */
};

/* ---- what the models would do here ---- */

/* The headers are in a folder for temporary files; the model will be on the disk of the cache.
 */
static bool limits_of_cache(void *ctx, const char *path, const struct mw_options *o,
                            const struct mw_read_sizes *sizes, struct mw_limits *out,
                            struct plan_anchor *anchor)
{
    struct pull *p = ctx;

    (void)path, (void)sizes;
    return limits_kept(&p->limits, p->hub.cache, o, NULL, out, anchor);
}

/* Describe model `only`, or all of them.  A model that cannot be described is listed without.
 */
static int describe(struct pull *p, size_t only, struct err *e)
{
    size_t n = mw_pull_count(p->list);
    struct settings_notice notice;
    struct mw_options engine;
    struct mw_describe_options how = { .limits = limits_of_cache, .limits_ctx = p };
    struct mw_describer *d;
    char text[64];
    int rc = 0;

    settings_engine(p->o, &engine, &notice);
    settings_report(p->o, &notice);
    if (only == SIZE_MAX) {
        progress_text(&p->progress, "measuring the disk");
        limits_ensure_folder(p->hub.cache, &engine);
    }
    limits_read(&p->limits); /* also how many threads compute, before they are described */
    if (mw_describer_new(&d, &engine, &how, e) != 0) {
        limits_store_free(&p->limits);
        return -1;
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (only != SIZE_MAX && i != only)
            continue;
        snprintf(text, sizeof text, "reading headers, %zu of %zu", i + 1, n);
        progress_text(&p->progress, text);
        if (!p->progress.is_on && !p->o->quiet && clock_s() - p->line_s >= LINE_EVERY_S) {
            p->line_s = clock_s();
            fprintf(stderr, "memwall: %s\n", text);
        }
        rc = mw_pull_describe(p->list, i, d, e);
    }
    progress_clear(&p->progress);
    mw_describer_free(d);
    limits_store_free(&p->limits);
    return rc;
}

static bool runs(const struct mw_pull_variant *c)
{
    return c->is_described && (c->model.fit == MW_FIT_FITS || c->model.fit == MW_FIT_STREAMS);
}

/* The largest model that fits; otherwise the smallest that runs.  SIZE_MAX: none does. */
static size_t best_of(const struct mw_pull *list)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < mw_pull_count(list); i++) {
        const struct mw_pull_variant *c = mw_pull_at(list, i);

        if (runs(c) && (best == SIZE_MAX || c->model.fit == MW_FIT_FITS))
            best = i;
    }
    return best;
}

/* ---- the variant ---- */

/* The type of a model, or its file if that is not the only one of the type. */
static const char *name_of(const struct mw_pull *list, size_t i)
{
    const struct mw_pull_variant *c = mw_pull_at(list, i);
    size_t first;

    return c->label[0] != '\0' && mw_pull_match(list, c->label, &first) == 1 ? c->label
                                                                             : c->file;
}

/* Find the model that the user named.  Returns its index, SIZE_MAX if none was named and there
 * are several, or SIZE_MAX with *e. */
static size_t named(const struct pull *p, struct err *e)
{
    struct mw_pull_info info;
    size_t first, n;

    mw_pull_info(p->list, &info);
    if (info.variant[0] == '\0')
        return mw_pull_count(p->list) == 1 ? 0 : SIZE_MAX;
    n = mw_pull_match(p->list, info.variant, &first);
    if (n == 1)
        return first;
    if (n == 0)
        err_set(e, ERR_ARGUMENT, "%.100s has no model \"%.80s\"; choose one of these",
                info.repo, info.variant);
    else
        err_set(e, ERR_ARGUMENT, "%.100s has %zu models \"%.80s\"; name the file", info.repo, n,
                info.variant);
    return SIZE_MAX;
}

/* Read a line from the terminal.  Returns -1 with *e if the user wants to stop. */
static int read_answer(const struct pull *p, char *line, size_t n, struct err *e)
{
    struct pollfd fds[] = { { STDIN_FILENO, POLLIN, 0 }, { p->hub.stop_fd, POLLIN, 0 } };
    ssize_t got = 0;

    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    if ((fds[1].revents & POLLIN) == 0)
        got = read(STDIN_FILENO, line, n - 1);
    if (got <= 0) {
        fputc('\n', stderr);
        return err_set(e, ERR_CANCELLED, "stopped");
    }
    line[got] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    return 0;
}

static int ask_which(const struct pull *p, size_t best, size_t *variant, struct err *e)
{
    uint64_t n = mw_pull_count(p->list), answer;
    char line[64];

    for (;;) {
        fprintf(stderr, best != SIZE_MAX ? "\nWhich one? [%zu] " : "\nWhich one? ", best + 1);
        if (read_answer(p, line, sizeof line, e) != 0)
            return -1;
        if (line[0] == '\0' && best != SIZE_MAX) {
            *variant = best;
            return 0;
        }
        if (units_parse_whole(line, false, 1, n, &answer)) {
            *variant = (size_t)answer - 1;
            return 0;
        }
        if (mw_pull_match(p->list, line, variant) == 1)
            return 0;
        fprintf(stderr, "Type a number from 1 to %zu.\n", (size_t)n);
    }
}

/* A model that does not run here is fetched only if the user insists. */
static int confirm(const struct pull *p, size_t variant, bool can_ask, struct err *e)
{
    const struct mw_pull_variant *c = mw_pull_at(p->list, variant);
    char outlook[300], line[16];

    if (!c->is_described || runs(c) || p->o->yes)
        return 0;
    pull_outlook(c, outlook, sizeof outlook);
    if (!can_ask)
        return err_set(e, c->model.fit == MW_FIT_TOO_LARGE ? ERR_BUDGET : ERR_UNSUPPORTED,
                       "%.60s: %.150s; --yes fetches it anyway", name_of(p->list, variant),
                       outlook);
    fputs("This model does not run here.  Fetch it anyway? [y/N] ", stderr);
    if (read_answer(p, line, sizeof line, e) != 0)
        return -1;
    return line[0] == 'y' || line[0] == 'Y' ? 0 : err_set(e, ERR_CANCELLED, "stopped");
}

/* ---- fetching ---- */

static void on_notice(void *ctx, const char *text)
{
    struct pull *p = ctx;

    progress_clear(&p->progress);
    if (!p->o->quiet)
        report_notice(text, strlen(text));
}

/* No request is sent for a while.  The user should know why nothing happens. */
static void on_wait(void *ctx, uint32_t left_s, const char *why)
{
    struct pull *p = ctx;
    bool is_new = left_s > p->wait_s;
    double silent_s = clock_s() - p->line_s;
    char text[300], clean[300];

    p->wait_s = left_s;
    if (left_s == 0)
        return;
    snprintf(text, sizeof text, "waiting %u s: %s", left_s, why);
    clean_line(clean, sizeof clean, text, strlen(text));
    progress_text(&p->progress, clean);
    if (p->progress.is_on || p->o->quiet ||
        (is_new ? left_s < WAIT_SHORT_S && silent_s < LINE_EVERY_S : silent_s < WAIT_EVERY_S))
        return;
    p->line_s = clock_s();
    fprintf(stderr, "memwall: %s\n", clean);
}

static void on_progress(void *ctx, const struct mw_pull_progress *now)
{
    struct pull *p = ctx;
    char a[16], b[16];

    if (!p->is_started || now->is_checking != p->is_checking)
        progress_restart(&p->progress, now->done);
    p->is_started = true;
    p->is_checking = now->is_checking;
    if (p->wait_s > 0)
        return;
    if (progress_is_due(&p->progress))
        progress_bytes(&p->progress, now->is_checking ? "checking" : "fetching", now->done,
                       now->total);
    if (p->progress.is_on || p->o->quiet || clock_s() - p->line_s < LINE_EVERY_S)
        return;
    p->line_s = clock_s();
    fprintf(stderr, "memwall: %s of %s\n", units_size(a, sizeof a, now->done),
            units_size(b, sizeof b, now->total));
}

static int fetch(struct pull *p, size_t variant, struct err *e)
{
    const struct mw_pull_variant *c = mw_pull_at(p->list, variant);
    struct mw_pull_info info;
    bool is_repo = c->is_snapshot && c->label[0] != '\0'; /* not in a folder */
    char path[4096], outlook[300], name[1400], word[2 * sizeof name];
    int rc;

    p->line_s = clock_s();
    rc = mw_pull_fetch(p->list, variant, on_progress, p, path, sizeof path, e);
    progress_clear(&p->progress);
    if (rc != 0)
        return -1;
    mw_pull_info(p->list, &info);
    if (p->o->json) {
        pull_print_json(stdout, p->list, p->hub.cache, variant, path);
        return 0;
    }
    puts(path);
    if (p->o->quiet)
        return 0;
    pull_outlook(c, outlook, sizeof outlook);
    snprintf(name, sizeof name, "%s%s%s", info.repo, is_repo ? "" : ":",
             is_repo ? "" : name_of(p->list, variant));
    quote_shell(name, word, sizeof word);
    if (c->is_described && !runs(c))
        fprintf(stderr, "memwall: fetched and checked, but it does not run here: %s\n", outlook);
    else
        fprintf(stderr, "memwall: fetched and checked; start a chat with: memwall -m %s\n",
                word);
    return 0;
}

/* Choose a model.  e->code is set if the user named one that is not there. */
static int choose(struct pull *p, size_t *variant, struct err *e)
{
    bool can_ask = isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !p->o->json;
    size_t best = best_of(p->list);
    char name[1400], word[2 * sizeof name];
    struct mw_pull_info info;

    mw_pull_info(p->list, &info);
    if (*variant == SIZE_MAX && e->code == ERR_NONE && p->o->yes)
        *variant = best;
    if (*variant == SIZE_MAX) {
        pull_print(stderr, p->list, p->hub.cache, best);
        if (e->code != ERR_NONE)
            return -1;
        snprintf(name, sizeof name, "%s:%s", info.repo,
                 name_of(p->list, best != SIZE_MAX ? best : 0));
        quote_shell(name, word, sizeof word);
        if (!can_ask || p->o->yes)
            return err_set(e, ERR_ARGUMENT,
                           "there are several models; name one, for example %.200s", word);
        if (ask_which(p, best, variant, e) != 0)
            return -1;
    } else if (!p->o->quiet) {
        pull_print_one(stderr, p->list, *variant);
    }
    return confirm(p, *variant, can_ask, e);
}

/* Ask the hub.  Pasted names may hold characters that cannot be seen, which no name has. */
static int ask_hub(struct pull *p, struct err *e)
{
    const char *given[] = { p->o->arg, p->o->revision };
    char *plain[] = { NULL, NULL };
    int rc = 0;

    for (int i = 0; rc == 0 && i < 2; i++) {
        plain[i] = given[i] != NULL ? strdup(given[i]) : NULL;
        if (plain[i] != NULL)
            (void)lookalike_plain(plain[i], strlen(plain[i]));
        else if (given[i] != NULL)
            rc = err_memory(e, "the name of a repository");
    }
    if (rc == 0 && mw_pull_open(&p->list, &p->hub, plain[0], plain[1], e) != 0)
        rc = lookalike_explain(e, plain[0]);
    free(plain[0]);
    free(plain[1]);
    return rc;
}

/* List, choose and fetch. */
static int pull(struct pull *p, struct err *e)
{
    size_t variant;

    if (ask_hub(p, e) != 0)
        return -1;
    variant = named(p, e);
    if (e->code != ERR_NONE)
        return describe(p, SIZE_MAX, e) != 0 ? -1 : choose(p, &variant, e);
    if (!p->o->list_only)
        return describe(p, variant, e) != 0 || choose(p, &variant, e) != 0
                   ? -1
                   : fetch(p, variant, e);
    if (describe(p, SIZE_MAX, e) != 0)
        return -1;
    if (p->o->json)
        pull_print_json(stdout, p->list, p->hub.cache, 0, NULL);
    else
        pull_print(stdout, p->list, p->hub.cache, best_of(p->list));
    return 0;
}

/* The exit code after an error; that of a signal if one came. */
static int exit_code(const struct pull *p, const struct err *e)
{
    int signo;

    if (e->code != ERR_CANCELLED)
        return e->code == ERR_ARGUMENT ? report_usage(&cmd_pull, e) : report_error(e);
    if (p->is_started && !p->o->quiet)
        fputs("memwall: stopped; the same command goes on from here\n", stderr);
    signo = signals_take(p->hub.stop_fd);
    return signo != 0 ? 128 + signo : EXIT_STOPPED;
}

static int run_pull(const struct options *o)
{
    struct pull p = { .o = o };
    struct err e = ERR_INIT;
    sigset_t before;
    char text[80];
    int code;

    if (o->arg == NULL) {
        err_set(&e, ERR_ARGUMENT, "no repository given; use memwall pull ORG/NAME");
        return report_usage(&cmd_pull, &e);
    }
    if (hub_settings(&p.hub, &e) != 0)
        return report_error(&e);
    p.hub.stop_fd = signals_block(&before);
    p.hub.on_notice = on_notice;
    p.hub.on_wait = on_wait;
    p.hub.ctx = &p;
    p.line_s = clock_s();
    progress_open(&p.progress, o->quiet);
    snprintf(text, sizeof text, "asking %.60s", p.hub.endpoint);
    progress_text(&p.progress, text);
    code = pull(&p, &e);
    progress_clear(&p.progress);
    if (code != 0)
        code = exit_code(&p, &e);
    mw_pull_close(p.list);
    if (p.hub.stop_fd >= 0)
        close(p.hub.stop_fd);
    return code;
}

const struct command cmd_pull = {
    .name = "pull",
    .args = "REPO[:TYPE|:FILE]",
    .help = "fetch a model from the Hugging Face hub",
    .about = "List the GGUF models, or the safetensors snapshot, of a repository, with what\n"
             "each would do on this machine, and fetch one into the cache of the hub.  Before\n"
             "that, only headers are read.  An interrupted download goes on where it ended.\n"
             "REPO can be a pasted address or a command of another program, too.\n"
             "The path of the model goes to standard output.",
    .examples = "memwall pull ggml-org/gemma-3-1b-it-GGUF\n"
                "memwall pull ggml-org/gemma-3-1b-it-GGUF:Q8_0\n"
                "memwall pull unsloth/gemma-3-4b-it-GGUF --list --memory 2G\n",
    .asks = "download fetch",
    .bit = CMD_PULL,
    .takes_arg = true,
    .joins_args = true,
    .reads_config = true,
    .run = run_pull,
};
