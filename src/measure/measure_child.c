/* See measure_child.h. */
#include "config.h"

#include "src/measure/measure_child.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/small_file.h"
#include "src/base/signals.h"
#include "src/measure/cage_keeper.h"

#define PROGRAM        "/proc/self/exe"
#define KILL_MS        2000 /* to wait for a killed process whose disk may hang */
#define SIGNAL_MS      200  /* between the death by Ctrl-C of the process and the own signal */
#define GRACE_S        1    /* for the last token and the memory figures of a process */
#define GRACE_SHARE    0.1  /* of the time limit, for the same */
#define LINE_MAX_BYTES ((size_t)1 << 20)
#define ARGS           64
#define IO_FILE_MAX    4096 /* of /proc/PID/io */

/* Options that a process gets as they are. */
static const enum option_id common[] = { OPT_EXACT,     OPT_BLAS, OPT_PACK,      OPT_NO_URING,
                                         OPT_DISK_RATE, OPT_MIRROR_RATE, OPT_COLD,
                                         OPT_TIME_LIMIT, OPT_DRAFT, OPT_DRAFT_DEPTH,
                                         OPT_DRAFT_ACCEPT };

/* The command line of a process. */
struct args {
    char *arg[ARGS];
    int n;
    char text[4096]; /* of the values */
    size_t used;
};

static void add_arg(struct args *a, const char *text)
{
    size_t n = strlen(text) + 1;

    if (a->n + 1 >= ARGS || a->used + n > sizeof a->text)
        return;
    a->arg[a->n++] = memcpy(a->text + a->used, text, n);
    a->used += n;
}

static void add_option(struct args *a, enum option_id id, const char *value)
{
    char name[40];

    snprintf(name, sizeof name, "--%s", options_table[id].name);
    add_arg(a, name);
    if (value != NULL)
        add_arg(a, value);
}

static void add_common(struct args *a, const struct options *o)
{
    char value[64];

    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        /* The limit may be a default of the command, which the process does not know. */
        if (!options_given(o, common[i]) && (common[i] != OPT_TIME_LIMIT || o->time_limit == 0))
            continue;
        options_print(o, common[i], value, sizeof value);
        add_option(a, common[i], options_table[common[i]].arg != NULL ? value : NULL);
    }
    if (o->chat.engine.mirror != NULL)
        add_option(a, OPT_MIRROR, o->chat.engine.mirror);
}

void measure_child_options(const struct options *o, char *buf, size_t n)
{
    struct args a = { .n = 0 };
    size_t used = 0;

    buf[0] = '\0';
    add_common(&a, o);
    for (int i = 0; i < a.n && used + strlen(a.arg[i]) + 2 < n; i++)
        used += (size_t)snprintf(buf + used, n - used, "%s%s", i > 0 ? " " : "", a.arg[i]);
}

static void make_args(struct args *a, const struct options *o, const struct point *p,
                      enum options_one part)
{
    char value[64];

    a->n = 0;
    a->used = 0;
    add_arg(a, "memwall");
    add_arg(a, "bench");
    add_option(a, OPT_ONE, part == ONE_PLAN ? "plan" : "run");
    for (int d = 0; d < N_DIMENSION; d++)
        if (setting_print(p, (enum dimension)d, value, sizeof value)[0] != '\0')
            add_option(a, dimension_table[d].option, value);
    add_common(a, o);
    if (p->is_caged && !o->cold) /* pages that others cached are not charged to the cage */
        add_option(a, OPT_COLD, NULL);
    add_arg(a, "--model");
    a->arg[a->n++] = (char *)(uintptr_t)o->model;
    a->arg[a->n] = NULL;
}

/* --- the process --- */

struct process {
    pid_t pid;
    int out, err; /* its standard output and error; -1: closed */
    char *line;   /* output that is not complete yet, and the last line */
    size_t used, size;
    char *answer;   /* the last complete line that is not progress */
    char said[400]; /* the end of its standard error */
};

/* In the new process: a parent that dies takes it along. */
static void become_program(int out, int err, pid_t parent, const struct mw_cage *cage,
                           const sigset_t *mask, char *const *arg)
{
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(err, 2) < 0)
        _exit(127);
    if (cage != NULL && mw_cage_enter(cage) != 0) {
        dprintf(2, "cannot enter its control group: %s\n", strerror(errno));
        _exit(127);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(PROGRAM, arg);
    dprintf(2, "cannot start %s: %s\n", PROGRAM, strerror(errno));
    _exit(127);
}

static int start(struct process *p, const struct mw_cage *cage, const sigset_t *mask,
                 char *const *arg, struct err *e)
{
    int out[2], err[2];
    pid_t parent = getpid();

    if (pipe2(out, O_CLOEXEC) != 0)
        return err_sys(e, "cannot make a pipe");
    if (pipe2(err, O_CLOEXEC) != 0) {
        err_sys(e, "cannot make a pipe");
        close(out[0]);
        close(out[1]);
        return -1;
    }
    p->pid = fork();
    if (p->pid == 0)
        become_program(out[1], err[1], parent, cage, mask, arg);
    close(out[1]);
    close(err[1]);
    p->out = out[0];
    p->err = err[0];
    if (p->pid < 0) {
        err_sys(e, "cannot start a process");
        close(p->out);
        close(p->err);
        return -1;
    }
    return 0;
}

/* Keep the end of what the process wrote to its standard error. */
static void take_said(struct process *p)
{
    char text[400];
    ssize_t n = read(p->err, text, sizeof text - 1);
    size_t have = strlen(p->said), drop;

    if (n <= 0) {
        close(p->err);
        p->err = -1;
        return;
    }
    drop = have + (size_t)n >= sizeof p->said ? have + (size_t)n - sizeof p->said + 1 : 0;
    memmove(p->said, p->said + drop, have - drop);
    memcpy(p->said + have - drop, text, (size_t)n);
    p->said[have - drop + (size_t)n] = '\0';
}

/* Use one line: progress, or the answer. */
static void take_line(struct measure_child *c, struct process *p, const char *line, size_t n)
{
    struct err ignored = ERR_INIT;
    struct json_doc *doc;
    const struct json_node *root;
    const char *stage;
    int64_t done = 0, total = 0;

    if (json_parse(&doc, line, n, &ignored) != 0)
        return;
    root = json_root(doc);
    stage = json_as_string(json_get(root, "stage"));
    if (stage == NULL) {
        free(p->answer);
        p->answer = strndup(line, n);
    } else if (json_as_int(json_get(root, "done"), &done) &&
               json_as_int(json_get(root, "total"), &total)) {
        c->stage(c->ctx, stage, (uint32_t)done, (uint32_t)total);
    }
    json_free(doc);
}

static int take_output(struct measure_child *c, struct process *p, struct err *e)
{
    char *end;
    ssize_t n;

    if (p->size - p->used < 4096) {
        char *more = p->size < LINE_MAX_BYTES ? realloc(p->line, p->size + 65536) : NULL;

        if (more == NULL)
            return err_memory(e, "the answer of a measurement");
        p->line = more;
        p->size += 65536;
    }
    n = read(p->out, p->line + p->used, p->size - p->used);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0) {
        close(p->out);
        p->out = -1;
        return 0;
    }
    p->used += (size_t)n;
    while ((end = memchr(p->line, '\n', p->used)) != NULL) {
        size_t len = (size_t)(end - p->line) + 1;

        take_line(c, p, p->line, len);
        memmove(p->line, p->line + len, p->used - len);
        p->used -= len;
    }
    return 0;
}

/* The time at which a process is killed, which ends itself before if it can; 0: never. */
static uint64_t deadline(const struct options *o)
{
    double s = o->time_limit;

    return s > 0 ? clock_ns() + (uint64_t)((s + s * GRACE_SHARE + GRACE_S) * 1e9) : 0;
}

/* Returns the earlier of two times; 0 is never. */
static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* The milliseconds until then, rounded up; -1: without end. */
static int wait_ms(uint64_t until_ns)
{
    uint64_t now = clock_ns();

    if (until_ns == 0)
        return -1;
    return until_ns > now ? (int)((until_ns - now + 999999) / 1000000) : 0;
}

static struct mw_os_value read_bytes(pid_t pid)
{
    struct err ignored = ERR_INIT;
    struct mw_os_value v = { .why_not = "/proc/PID/io cannot be read" };
    unsigned long long bytes;
    char path[40], *text;
    const char *line;

    snprintf(path, sizeof path, "/proc/%ld/io", (long)pid);
    text = small_file_read(path, IO_FILE_MAX, NULL, &ignored);
    line = text != NULL ? strstr(text, "\nread_bytes: ") : NULL;
    if (line != NULL && sscanf(line, "\nread_bytes: %llu", &bytes) == 1)
        v = (struct mw_os_value){ .value = bytes };
    free(text);
    return v;
}

/* Tell the caller what the process holds now.  Returns false if it shall end. */
static bool tick(struct measure_child *c, const struct process *p, const struct mw_cage *cage)
{
    struct measure_live now;

    if (cage != NULL)
        mw_cage_use(cage, &now.use);
    else
        now.use.charged = now.use.cached = now.use.reread =
            (struct mw_os_value){ .why_not = "the process has no control group" };
    now.read_bytes = read_bytes(p->pid);
    return c->tick(c->ctx, &now);
}

/* Wait until the process has closed its output.  Returns -1 with *e if it must be killed. */
static int follow(struct measure_child *c, struct process *p, const struct mw_cage *cage,
                  uint64_t until_ns, struct err *e)
{
    uint64_t tick_ns = c->tick != NULL ? clock_ns() : 0;

    while (p->out >= 0 || p->err >= 0) {
        struct pollfd fds[] = { { p->out, POLLIN, 0 },
                                { p->err, POLLIN, 0 },
                                { c->signals, POLLIN, 0 },
                                { c->tick != NULL ? c->watched[0] : -1, POLLIN, 0 },
                                { c->tick != NULL ? c->watched[1] : -1, POLLIN, 0 } };
        int n = poll(fds, sizeof fds / sizeof fds[0], wait_ms(earlier(until_ns, tick_ns)));

        if (n < 0 && errno != EINTR)
            return err_sys(e, "cannot wait for a measurement");
        c->is_late = n == 0 && until_ns > 0 && clock_ns() >= until_ns;
        if (c->is_late)
            return err_set(e, ERR_IO, "no answer was measured in the %u s of --time-limit",
                           c->o->time_limit);
        if (c->tick != NULL &&
            (fds[3].revents != 0 || fds[4].revents != 0 || clock_ns() >= tick_ns)) {
            tick_ns = clock_ns() + MEASURE_TICK_MS * (uint64_t)1000000;
            if (!tick(c, p, cage))
                return err_set(e, ERR_CANCELLED, "stopped");
        }
        if (fds[2].revents != 0 && (c->stopped_by = signals_take(c->signals)) != 0)
            return err_set(e, ERR_CANCELLED, "stopped");
        if (fds[0].revents != 0 && take_output(c, p, e) != 0)
            return -1;
        if (fds[1].revents != 0)
            take_said(p);
    }
    return 0;
}

/* A process that reads from a disk that hangs cannot die: do not wait for it without limit. */
static void kill_and_wait(struct process *p)
{
    struct pollfd fd = { p->out, 0, 0 }; /* hangs up when the process has died */

    kill(p->pid, SIGKILL);
    if (p->out < 0 || poll(&fd, 1, KILL_MS) > 0)
        waitpid(p->pid, NULL, 0);
}

/* Ctrl-C on a terminal reaches the process and us; it may be first. */
static bool is_stopped(struct measure_child *c, int status)
{
    struct pollfd fd = { c->signals, POLLIN, 0 };
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (signo != SIGINT && signo != SIGTERM && signo != SIGHUP)
        return false;
    if (poll(&fd, 1, SIGNAL_MS) <= 0)
        return false;
    c->stopped_by = signals_take(c->signals);
    return c->stopped_by != 0;
}

static int explain(const struct process *p, int status, struct err *e)
{
    size_t n = strcspn(p->said, "\n");

    if (WIFSIGNALED(status))
        return err_set(e, ERR_IO, "the measurement was killed by signal %d (%s)%s%.*s",
                       WTERMSIG(status), strsignal(WTERMSIG(status)), n > 0 ? ": " : "",
                       n < 120 ? (int)n : 120, p->said);
    return err_set(e, ERR_IO, "the measurement ended with status %d%s%.*s", WEXITSTATUS(status),
                   n > 0 ? ": " : "", n < 160 ? (int)n : 160, p->said);
}

static int finish(struct measure_child *c, struct process *p, struct json_doc **out,
                  struct err *e)
{
    int status;

    while (waitpid(p->pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, "cannot wait for a measurement");
    if (is_stopped(c, status))
        return err_set(e, ERR_CANCELLED, "stopped");
    if (p->answer == NULL)
        return explain(p, status, e);
    return json_parse(out, p->answer, strlen(p->answer), e);
}

int measure_child(struct measure_child *c, const struct point *p, enum options_one part,
                  struct json_doc **out, uint64_t *charge, struct err *e)
{
    struct process process = { 0 };
    struct err ignored = ERR_INIT;
    struct cage_keeper keeper = { 0, -1 };
    struct mw_cage *cage = NULL;
    struct args args;
    int r;

    *out = NULL;
    *charge = 0;
    c->stopped_by = 0;
    c->is_late = false;
    make_args(&args, c->o, p, part);
    if (part == ONE_RUN &&
        mw_cage_open(&cage, p->is_caged ? p->budget_bytes : 0, p->is_caged ? e : &ignored) !=
            0 &&
        p->is_caged)
        return -1;
    r = start(&process, cage, c->before, args.arg, e);
    if (cage != NULL)
        cage_keeper_start(&keeper, cage);
    if (r == 0) {
        r = follow(c, &process, cage, part == ONE_RUN ? deadline(c->o) : 0, e);
        if (r == 0)
            r = finish(c, &process, out, e);
        else
            kill_and_wait(&process);
        if (process.out >= 0)
            close(process.out);
        if (process.err >= 0)
            close(process.err);
    }
    if (r == 0 && cage != NULL)
        *charge = mw_cage_peak(cage);
    cage_keeper_stop(&keeper);
    mw_cage_close(cage);
    free(process.line);
    free(process.answer);
    return r;
}
