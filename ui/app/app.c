#include "config.h"

#include "ui/app/app.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/folder.h"
#include "ui/app/plain.h"
#include "ui/dash/dash.h"
#include "ui/engine/engine.h"
#include "ui/talk/commands.h"
#include "ui/words/receipt.h"

#define FRAME_NS     ((uint64_t)33 * 1000 * 1000) /* at most 30 frames a second */
#define IDLE_NS      ((uint64_t)1000 * 1000 * 1000)
#define LOADING_NS   ((uint64_t)250 * 1000 * 1000)
#define LONG_MESSAGE 400 /* bytes from which the cost is shown before sending */
#define UNSEEN_NS    ((uint64_t)2000 * 1000 * 1000) /* without the focus */

void app_dirty(struct app *a, unsigned dirt)
{
    a->dirt |= dirt;
}

void app_hint(struct app *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->hint, sizeof a->hint, fmt, ap);
    va_end(ap);
    app_dirty(a, DIRT_INPUT);
}

/* ---- signals ---- */

/* Adapt to the terminal's size, which may have changed. */
static void take_size(struct app *a)
{
    if (term_is_cut(a->term)) {
        struct canvas c = term_canvas(a->term);

        app_hint(a, "%d x %d cells are used: more would take memory from the budget", c.width,
                 c.height);
    }
    app_layout(a);
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
}

static void on_signal(struct app *a, int sig)
{
    if (term_obey(a->term, sig)) {
        take_size(a);
    } else if (sig == SIGINT) {
        app_stop_or_leave(a);
    } else {
        a->status = 128 + sig;
        a->is_leaving = true;
    }
}

static void take_signals(struct app *a)
{
    int sig;

    while ((sig = term_signal(a->term)) != 0)
        on_signal(a, sig);
}

/* ---- keys ---- */

/* Units that change nothing on the screen, such as reports of the focus, wait for no frame. */
static void take_keys(struct app *a, uint64_t read_ns)
{
    unsigned before = a->dirt;
    struct key key;

    a->dirt = 0;
    while (!a->is_leaving && keys_next(a->keys, clock_ns(), &key))
        app_key(a, &key);
    if (a->dirt != 0 && a->key_ns == 0)
        a->key_ns = read_ns;
    a->dirt |= before;
}

static void read_keys(struct app *a)
{
    unsigned char bytes[4096];
    size_t room = keys_room(a->keys);
    ssize_t n = read(term_fd(a->term), bytes, room < sizeof bytes ? room : sizeof bytes);
    uint64_t now = clock_ns();

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) { /* the terminal is gone, so nothing more is drawn */
        a->status = 128 + SIGHUP;
        a->is_leaving = true;
        return;
    }
    for (ssize_t i = 0; i < n && a->n_ahead > 0; i++, a->n_ahead--)
        if (bytes[i] == '\n') /* Enter, as the kernel gave it to the shell */
            bytes[i] = '\r';
    keys_feed(a->keys, bytes, (size_t)n, now);
    take_keys(a, now);
}

/* ---- time ---- */

static uint64_t sample_every(const struct app *a)
{
    int refresh_ms = a->ui.refresh_ms;
    uint64_t ns = (uint64_t)(refresh_ms > 0 ? refresh_ms : 250) * 1000000u;
    bool busy = talk_state(a->talk) != TALK_READY;
    struct mw_rates rates;

    mw_rates(&a->sample, &rates);
    if (rates.loading >= 0 && ns > LOADING_NS) /* "ready" must not come late */
        return LOADING_NS;
    if (!a->has_focus && ns < UNSEEN_NS)
        return UNSEEN_NS;
    return busy || ns > IDLE_NS ? ns : IDLE_NS;
}

static uint64_t left(uint64_t since, uint64_t length, uint64_t now)
{
    return now - since >= length ? 0 : length - (now - since);
}

/* The tour waits while the person looks at a sheet or at a layer. */
static bool runs_tour(const struct app *a)
{
    return a->tour != NULL && a->mode == MODE_LINE;
}

/* Returns the nanoseconds until something is due. */
static uint64_t wait_ns(const struct app *a, uint64_t now)
{
    uint64_t wait = left(a->sample_ns, sample_every(a), now);
    uint64_t keys = keys_wait(a->keys, now);
    uint64_t cost = a->cost.due_ns == 0    ? UINT64_MAX
                    : a->cost.due_ns > now ? a->cost.due_ns - now
                                           : 0;

    if ((a->models.pick != NULL && pick_has_work(a->models.pick)) || a->wall.making != NULL)
        return 0;
    if (a->dirt != 0 && left(a->frame_ns, FRAME_NS, now) < wait)
        wait = left(a->frame_ns, FRAME_NS, now);
    wait = cost < wait ? cost : wait;
    wait = talk_wait(a->talk) < wait ? talk_wait(a->talk) : wait;
    if (runs_tour(a) && tour_wait(a->tour) < wait)
        wait = tour_wait(a->tour);
    return keys < wait ? keys : wait;
}

/* Show what a server reports in place of the panels, unless it sends its samples. */
static void take_server(struct app *a)
{
    struct mw_server_figures f;
    bool has_server = talk_server(a->talk, &f);

    dash_set_server(a->dash, has_server && !f.is_live ? &f : NULL, talk_info(a->talk));
    dash_set_keys(a->dash, !has_server);
}

static void take_sample(struct app *a)
{
    uint64_t now = clock_ns();

    if (left(a->sample_ns, sample_every(a), now) > 0)
        return;
    talk_sample(a->talk, &a->sample);
    dash_push(a->dash, &a->sample);
    take_server(a);
    app_title(a);
    a->sample_ns = now;
    app_dirty(a,
              DIRT_STATUS | DIRT_DASH | (talk_state(a->talk) == TALK_PREFILL ? DIRT_CHAT : 0u));
}

/* Show what sending the line would cost, once the keys pause and if it takes a while. */
static void price(struct app *a)
{
    struct mw_cost cost = { 0 };
    const char *text = edit_text();

    if (a->cost.due_ns == 0 || clock_ns() < a->cost.due_ns)
        return;
    a->cost.due_ns = 0;
    if (text[0] == '/' || !talk_cost(a->talk, text, &cost))
        return;
    if (strlen(text) < LONG_MESSAGE && talk_outbox(a->talk)->n_file == 0 && cost.n_again == 0 &&
        cost.n_token <= cost.n_ctx_left)
        return;
    receipt_cost(a->cost.text, sizeof a->cost.text, &cost, a->layout.rule.width - 5);
    app_dirty(a, DIRT_INPUT);
}

/* Typing ends the tour. */
static void take_tour(struct app *a)
{
    if (!runs_tour(a))
        return;
    if (!edit_is_empty())
        tour_end(a->tour);
    tour_tick(a->tour);
    if (!tour_is_over(a->tour))
        return;
    tour_free(a->tour);
    a->tour = NULL;
    app_dirty(a, DIRT_INPUT);
}

/* Draw a frame: at once after a key, else when a frame is due. */
static void show(struct app *a)
{
    uint64_t now = clock_ns();
    int y, x;

    if (a->dirt == 0 || (a->key_ns == 0 && left(a->frame_ns, FRAME_NS, now) > 0))
        return;
    app_layout(a);
    app_draw(a, &y, &x);
    term_frame(a->term, y, x, (a->dirt & DIRT_LARGE) != 0);
    a->dirt = 0;
    a->frame_ns = now;
    if (a->key_ns != 0 && a->latency != NULL)
        latency_add(a->latency, clock_ns() - a->key_ns);
    a->key_ns = 0;
}

/* ---- the loop ---- */

static int loop(struct app *a, struct err *e)
{
    while (!a->is_leaving) {
        struct pollfd fds[] = { { term_fd(a->term), POLLIN, 0 },
                                { term_signal_fd(a->term), POLLIN, 0 },
                                { talk_fd(a->talk), POLLIN, 0 },
                                { talk_shell_fd(a->talk), POLLIN, 0 } };
        uint64_t wait = wait_ns(a, clock_ns());
        struct timespec timeout = { (time_t)(wait / 1000000000u), (long)(wait % 1000000000u) };

        if (ppoll(fds, 4, &timeout, NULL) < 0 && errno != EINTR)
            return err_sys(e, "cannot wait for keys");
        if (fds[1].revents != 0)
            take_signals(a);
        if (fds[0].revents != 0)
            read_keys(a);
        else
            take_keys(a, clock_ns());
        if (a->key_ns != 0 && !a->is_leaving) /* taking a sample would delay it */
            show(a);
        if (fds[2].revents != 0)
            talk_pump(a->talk);
        if (fds[3].revents != 0)
            talk_shell_pump(a->talk);
        if (a->is_leaving)
            break;
        talk_tick(a->talk);
        app_models_work(a);
        take_tour(a);
        take_sample(a);
        price(a);
        app_wall_work(a);
        show(a);
    }
    return a->status;
}

static void report(struct app *a, struct term_counts counts)
{
    printf("frames %llu, bytes %llu, ", (unsigned long long)counts.frames,
           (unsigned long long)counts.bytes);
    latency_print(a->latency);
    putchar('\n');
}

#define NO_SCREEN (-2) /* in place of -1: this terminal has no screen, but plain mode works */

static int screen_failed(const struct err *e)
{
    return e->code == ERR_UNSUPPORTED ? NO_SCREEN : -1;
}

static int open_all(struct app *a, const struct ui_chat_options *o, struct err *e)
{
    struct transcript_options t = { .load = app_load, .load_ctx = a, .show_receipts = true };
    const struct ui_options *ui = &o->options->ui;
    enum ui_graph graph = ui->graph;
    struct term_options term = { .ui = ui, .config_dir = o->paths.config_dir };
    struct talk_front front = app_front(a);
    char log[4096], history[4096];

    snprintf(log, sizeof log, "%s/log", o->paths.state_dir);
    snprintf(history, sizeof history, "%s/history", o->paths.state_dir);
    term.log_path = log;
    folder_make(o->paths.state_dir);
    if (term_new(&a->term, &term, e) != 0)
        return screen_failed(e);
    a->keys = keys_new();
    a->transcript = transcript_new(&t);
    a->latency = ui->count_bytes ? calloc(1, sizeof *a->latency) : NULL;
    if (a->keys == NULL || a->transcript == NULL || (ui->count_bytes && a->latency == NULL))
        return err_memory(e, "the screen");
    if (talk_open(&a->talk, o, &front, e) != 0 || history_open(&a->history, history, e) != 0)
        return -1;
    if (graph == UI_GRAPH_AUTO)
        graph = term_graph(a->term);
    a->dash = dash_new(graph, e);
    if (a->dash == NULL)
        return -1;
    dash_set_cap(a->dash, o->options->chat.n_predict);
    dash_set_keys(a->dash, true);
    dash_set_wall(a->dash, NULL);
    if (o->engine->wall_begin == NULL)
        dash_set_wall_unknown(a->dash);
    app_load_panels(a);
    edit_open(term_in(a->term), a->history, command_complete, a->talk);
    a->has_edit = true;
    return term_start(a->term, a->keys, e) == 0 ? 0 : screen_failed(e);
}

/* has_failed: messages that were typed have nobody to answer them. */
static int close_all(struct app *a, const struct ui_chat_options *o, bool has_failed,
                     struct err *e)
{
    struct term_counts counts = { 0 };
    bool counted = a->has_edit && a->latency != NULL;
    bool quiet = o->options->quiet || !a->has_edit;
    char path[4096] = "", resume[4900] = "";
    int rc = 0;

    sheet_free(a->sheet); /* while there is a screen that it may restore */
    if (has_failed && a->term != NULL)
        term_drop_typed(a->term);
    if (a->term != NULL)
        counts = term_counts(a->term);
    if (a->talk != NULL)
        rc = saving_finish(talk_saving(a->talk), path, sizeof path, e);
    if (path[0] != '\0')
        saving_resume(talk_saving(a->talk), path, &talk_options(a->talk)->engine, resume,
                      sizeof resume);
    term_free(a->term);
    if (a->has_edit)
        edit_close();
    talk_close(a->talk);
    if (counted)
        report(a, counts);
    if (path[0] != '\0' && rc == 0 && !quiet)
        printf("The chat is saved in %s\n%s resumes it.\n", path, resume);
    app_wall_stop(a);
    dash_free(a->dash);
    history_close(a->history);
    transcript_free(a->transcript);
    keys_free(a->keys);
    app_leave_models(a);
    tour_free(a->tour);
    free(a->latency);
    return rc;
}

int ui_chat(const struct ui_chat_options *o, struct err *e)
{
    const struct ui_options *ui = &o->options->ui;
    struct app *a;
    struct err ignored = ERR_INIT;
    char text[700];
    int rc;

    if (ui->plain)
        return plain_chat(o, e);
    a = calloc(1, sizeof *a);
    if (a == NULL)
        return err_memory(e, "the screen");
    a->ui = *ui;
    a->permille = ui->split_percent * 10;
    a->has_focus = true;
    rc = open_all(a, o, e);
    if (rc == 0) {
        a->n_ahead = term_typed_ahead(a->term);
        keys_set_mouse(a->keys, !a->ui.no_mouse);
        take_size(a);
        if (o->options->open_chat != NULL)
            app_show_saved(a);
        talk_greet(a->talk);
        command_begin(a->talk);
        if (o->first != NULL)
            talk_send(a->talk, o->first);
        if (o->tour)
            a->tour = tour_new(a->talk, true);
        rc = loop(a, e);
    }
    if (rc >= 0)
        rc = close_all(a, o, false, e) == 0 ? rc : -1;
    else
        (void)close_all(a, o, rc != NO_SCREEN, &ignored);
    free(a);
    if (rc != NO_SCREEN)
        return rc;
    err_text(e, text, sizeof text);
    fprintf(stderr, "memwall: %s; continuing in plain mode\n", text);
    return plain_chat(o, e);
}
