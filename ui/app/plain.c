#include "config.h"

#include "ui/app/plain.h"

#include <sys/signalfd.h>

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "ui/app/plain_internal.h"
#include "ui/talk/commands.h"
#include "ui/talk/server_setting.h"

static void on_signal(struct plain *p)
{
    struct signalfd_siginfo info;

    if (read(p->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo != SIGINT) {
        p->status = 128 + (int)info.ssi_signo;
        p->is_leaving = true;
    } else {
        if (p->is_tty) { /* as the terminal drops what was not read yet */
            p->n_typed = 0;
            p->said_waiting = false;
        }
        plain_interrupt(p);
    }
}

/* The next piped line may answer the sheet that the server's reply opens. */
static bool waits_for_server(const struct plain *p)
{
    return !p->is_tty && server_setting_waits(p->talk);
}

static bool is_idle(const struct plain *p)
{
    if (waits_for_server(p))
        return false;
    return talk_state(p->talk) == TALK_READY || talk_state(p->talk) == TALK_FAILED;
}

bool plain_is_idle(const struct plain *p)
{
    return is_idle(p) &&
           (talk_state(p->talk) == TALK_FAILED || talk_outbox(p->talk)->n_queue == 0);
}

/* In a pipe the tour is all there is. */
static void begin_tour(struct plain *p)
{
    bool is_seen = isatty(STDOUT_FILENO) == 1;

    p->tour = tour_new(p->talk, is_seen);
    p->at_end = !is_seen;
    if (p->is_tty && is_seen)
        plain_put_line(p, "* Enter goes on to the next step of the tour; a message ends it");
}

static void take_tour(struct plain *p)
{
    if (p->tour == NULL)
        return;
    tour_tick(p->tour);
    if (!tour_is_over(p->tour))
        return;
    tour_free(p->tour);
    p->tour = NULL;
}

/* Piped messages get their answers first, if there is a model.  A person does not wait for an
 * answer that ends. */
static bool is_over(const struct plain *p)
{
    enum talk_state state = talk_state(p->talk);
    char changes[200];

    if (!p->at_end || p->n_typed > 0 || p->tour != NULL || waits_for_server(p) ||
        talk_pending(p->talk, changes, sizeof changes)[0] != '\0')
        return false;
    return state == TALK_FAILED ||
           (talk_outbox(p->talk)->n_queue == 0 &&
            (state == TALK_READY || (p->is_tty && state == TALK_STOPPING)));
}

/* Without a model, messages in a pipe have no answers. */
static void report_failed(struct plain *p)
{
    size_t n = talk_outbox(p->talk)->n_queue;
    char line[120];

    if (talk_state(p->talk) != TALK_FAILED)
        return;
    p->status = 1;
    snprintf(line, sizeof line, "error: the model is not loaded, so %zu message%s not answered",
             n, n == 1 ? " is" : "s are");
    if (n > 0)
        plain_put_line(p, line);
}

/* Returns the milliseconds until something is due, -1 for never. */
static int wait_ms(const struct plain *p)
{
    uint64_t wait = talk_wait(p->talk);

    if (p->tour != NULL && tour_wait(p->tour) < wait)
        wait = tour_wait(p->tour);
    return wait == UINT64_MAX ? -1 : (int)(wait / 1000000 + 1);
}

static int loop(struct plain *p, struct err *e)
{
    while (!p->is_leaving) {
        /* Piped lines are read when the engine is free; a person may type ahead. */
        bool reads = !p->at_end && (p->is_tty || is_idle(p));
        struct pollfd fds[] = { { p->signal_fd, POLLIN, 0 },
                                { talk_fd(p->talk), POLLIN, 0 },
                                { reads ? STDIN_FILENO : -1, POLLIN, 0 },
                                { talk_shell_fd(p->talk), POLLIN, 0 } };

        while (!p->is_leaving && (p->is_tty || is_idle(p)) && plain_take_typed(p))
            ;
        if (p->is_leaving)
            break;
        if (is_over(p)) {
            report_failed(p);
            break;
        }
        if (is_idle(p) && p->tour == NULL)
            plain_put_prompt(p, plain_prompt(p));
        fflush(stdout);
        fds[1].fd = talk_fd(p->talk);
        fds[3].fd = talk_shell_fd(p->talk);
        if (poll(fds, 4, wait_ms(p)) < 0 && errno != EINTR)
            return err_sys(e, "cannot wait for lines");
        if (fds[0].revents != 0)
            on_signal(p);
        if (fds[1].revents != 0)
            talk_pump(p->talk);
        if (fds[2].revents != 0)
            plain_read_lines(p);
        if (fds[3].revents != 0)
            talk_shell_pump(p->talk);
        talk_tick(p->talk);
        take_tour(p);
    }
    return p->status;
}

static int open_all(struct plain *p, const struct ui_chat_options *o, sigset_t *before,
                    struct err *e)
{
    struct talk_front front;
    sigset_t set;

    setlocale(LC_CTYPE, "");
    p->is_utf8 = strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0 || o->options->ui.utf8;
    p->is_utf8 = p->is_utf8 && !o->options->ui.ascii;
    p->is_tty = isatty(STDIN_FILENO) == 1;
    p->at_line_start = true;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, before);
    signal(SIGPIPE, SIG_IGN);
    p->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (p->signal_fd < 0)
        return err_sys(e, "cannot make a descriptor for signals");
    plain_front(p, &front);
    return talk_open(&p->talk, o, &front, e);
}

int plain_chat(const struct ui_chat_options *o, struct err *e)
{
    struct plain p = { .signal_fd = -1 };
    char path[4096] = "", resume[4900];
    struct err unsaved = ERR_INIT;
    sigset_t before;
    int rc;

    sigemptyset(&before);
    rc = open_all(&p, o, &before, e);
    if (rc == 0) {
        if (o->options->open_chat != NULL)
            plain_on_restored(&p);
        if (p.is_tty && !o->options->quiet)
            plain_put_line(&p, "* memwall in plain mode; /help lists the commands");
        talk_greet(p.talk);
        command_begin(p.talk);
        if (o->first != NULL)
            talk_send(p.talk, o->first);
        if (o->tour)
            begin_tour(&p);
        rc = loop(&p, e);
        if (p.has_prompt)
            putchar('\n');
        if (saving_finish(talk_saving(p.talk), path, sizeof path, &unsaved) != 0) {
            path[0] = '\0';
            if (rc >= 0) {
                *e = unsaved;
                rc = -1;
            }
        }
        if (path[0] != '\0')
            saving_resume(talk_saving(p.talk), path, &talk_options(p.talk)->engine, resume,
                          sizeof resume);
        sheet_free(p.sheet); /* it may return a message to the line */
        p.sheet = NULL;
        talk_close(p.talk);
        if (path[0] != '\0' && !o->options->quiet)
            printf("* the chat is saved in %s; %s resumes it\n", path, resume);
        fflush(stdout);
    }
    sheet_free(p.sheet);
    tour_free(p.tour);
    free(p.draft);
    free(p.typed);
    if (p.signal_fd >= 0)
        close(p.signal_fd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
