#include "config.h"

#include "ui/dash/player.h"

#include <stdlib.h>
#include <string.h>

struct player {
    char *path;
    struct mw_replay *replay;
    struct mw_sample next; /* read but not pushed yet */
    struct mw_sample shown;
    bool has_next, is_broken;
    uint64_t start_ns, end_ns; /* times of the first and the last sample */
    double now_s;
    struct err broken;
};

/* Read the next sample.  The recording ends at the first unreadable line. */
static void fetch(struct player *p)
{
    struct err e = ERR_INIT;

    p->has_next = mw_replay_next(p->replay, &p->next, &e) == 1;
}

static int begin(struct player *p, struct err *e)
{
    mw_replay_close(p->replay);
    p->replay = NULL;
    p->has_next = false;
    p->now_s = 0;
    memset(&p->shown, 0, sizeof p->shown);
    if (mw_replay_open(&p->replay, p->path, e) != 0)
        return -1;
    fetch(p);
    return 0;
}

static double second_of(const struct player *p, const struct mw_sample *s)
{
    return s->t_ns > p->start_ns ? (double)(s->t_ns - p->start_ns) / 1e9 : 0;
}

/* Find the first and last time.  Samples are read again when they are shown. */
static int measure(struct player *p, struct err *e)
{
    bool is_first = true;
    int got;

    if (mw_replay_open(&p->replay, p->path, e) != 0)
        return -1;
    while ((got = mw_replay_next(p->replay, &p->next, &p->broken)) == 1) {
        if (is_first)
            p->start_ns = p->next.t_ns;
        if (p->next.t_ns > p->end_ns)
            p->end_ns = p->next.t_ns;
        is_first = false;
    }
    p->is_broken = got < 0;
    if (is_first && p->is_broken) {
        *e = p->broken;
        return -1;
    }
    return 0;
}

int player_open(struct player **out, const char *path, struct err *e)
{
    struct player *p = calloc(1, sizeof *p);

    *out = NULL;
    if (p == NULL || (p->path = strdup(path)) == NULL) {
        free(p);
        return err_memory(e, "a recording");
    }
    if (measure(p, e) != 0 || begin(p, e) != 0) {
        player_close(p);
        return -1;
    }
    *out = p;
    return 0;
}

void player_close(struct player *p)
{
    if (p == NULL)
        return;
    mw_replay_close(p->replay);
    free(p->path);
    free(p);
}

double player_now_s(const struct player *p)
{
    return p->now_s;
}

double player_length_s(const struct player *p)
{
    return p->end_ns > p->start_ns ? (double)(p->end_ns - p->start_ns) / 1e9 : 0;
}

bool player_is_at_end(const struct player *p)
{
    return !p->has_next;
}

const struct err *player_broken(const struct player *p)
{
    return p->is_broken ? &p->broken : NULL;
}

static void show_next(struct player *p, struct dash *d)
{
    p->shown = p->next;
    dash_push(d, &p->shown);
    fetch(p);
}

bool player_advance(struct player *p, struct dash *d, double seconds)
{
    double until = p->now_s + seconds;
    bool pushed = false;

    while (p->has_next && second_of(p, &p->next) <= until) {
        show_next(p, d);
        pushed = true;
    }
    p->now_s = p->has_next && until < player_length_s(p) ? until : player_length_s(p);
    return pushed;
}

bool player_step(struct player *p, struct dash *d)
{
    if (!p->has_next)
        return false;
    show_next(p, d);
    p->now_s = second_of(p, &p->shown);
    return true;
}

int player_seek(struct player *p, struct dash *d, double seconds, struct err *e)
{
    seconds = seconds > 0 ? seconds : 0;
    if (seconds < p->now_s && begin(p, e) != 0)
        return -1;
    player_advance(p, d, seconds - p->now_s);
    return 0;
}

const struct mw_sample *player_sample(const struct player *p)
{
    return &p->shown;
}

/* ---- printed ---- */

/* Make a dashboard and push the whole recording. */
static int play_through(struct player **p, struct dash **d, const char *path,
                        enum ui_graph graph, struct err *e)
{
    *d = NULL;
    if (player_open(p, path, e) != 0)
        return -1;
    *d = dash_new(graph, e);
    if (*d == NULL) {
        player_close(*p);
        return -1;
    }
    player_advance(*p, *d, player_length_s(*p));
    return 0;
}

int player_print(const char *path, int width, int height, bool ascii, FILE *f, struct err *e)
{
    struct canvas_target *t = canvas_on_grid(height, width, ascii, e);
    struct player *p;
    struct dash *d;
    struct canvas c;

    if (t == NULL)
        return -1;
    if (play_through(&p, &d, path, ascii ? UI_GRAPH_ASCII : UI_GRAPH_BRAILLE, e) != 0) {
        canvas_target_free(t);
        return -1;
    }
    c = canvas_of(t);
    dash_draw(d, &c);
    canvas_write_text(t, f);
    canvas_target_free(t);
    dash_free(d);
    player_close(p);
    return 0;
}

int player_print_json(const char *path, FILE *f, struct err *e)
{
    struct player *p;
    struct dash *d;

    if (play_through(&p, &d, path, UI_GRAPH_ASCII, e) != 0)
        return -1;
    ui_dash_json(player_sample(p), f);
    dash_free(d);
    player_close(p);
    return 0;
}
