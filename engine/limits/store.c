#include "config.h"

#include "engine/limits/store.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "engine/base/json_write.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"
#include "engine/format/json.h"

#define MINUTE_S   60
#define DAY_S      (24 * 3600)
#define DOUBTFUL_S (10 * MINUTE_S)
/* Ways of products and numbers of threads are measured again this much later: those of before, or
 * of the make, are nearly as good, and beside a load that stays, each new try takes half a second
 * of a start. */
#define DOUBTFUL_WAYS_S (2 * 3600)
#define FOR_GOOD   INT64_MAX
#define LINES_MOST 60  /* of a kind */
#define TRIED_MOST 192 /* lines of tried settings, of all models */
/* A lock is waited for this long: 2 s.  To write the file takes some milliseconds. */
#define LOCK_NAP_NS 2000000
#define LOCK_NAPS   1000
/* No machine has more: bytes or operations per second, tokens that were watched. */
#define VALUE_MOST 1e16

#define KV_NAMES(what) "f32_" what, "f16_" what, "q8_0_" what, "q4_0_" what

static const struct {
    const char *name;
    int64_t life_s;
    const char *value[LIMITS_VALUES];
} kinds[LIMITS_KINDS] = {
    [LIMITS_DISK] = { "disk",
                      DAY_S,
                      { "bytes_s", "memory_bytes_s", "direct_bytes_s", "buffered_bytes_s",
                        "lookup_s", "read_cpu_s", "contention", "fresh_bytes_s" } },
    [LIMITS_TYPE] = { "type", DAY_S, { "column_bytes_s", "chunk_flops_s", "few_bytes_s" } },
    [LIMITS_STEPS] = { "steps",
                       DAY_S,
                       { "round_s", "wake_s", "value_s", "curve_s", KV_NAMES("load_s"),
                         KV_NAMES("mac_s") } },
    [LIMITS_WAYS] = { "ways",
                      DAY_S,
                      { "file_5_bits", "file_6_bits", "file_8_bits", "interleaved_5_bits",
                        "interleaved_6_bits", "interleaved_8_bits", "few_columns",
                        "panel_columns", "interleaved_columns", "amx_columns" } },
    [LIMITS_FORM] = { "form", FOR_GOOD, { "in_file_s", "interleaved_s" } },
    [LIMITS_THREADS] = { "threads", FOR_GOOD, { "core_s", "fewer_s", "cpu_s" } },
    [LIMITS_PRODUCT] = { "product", FOR_GOOD, { "kernels_flops_s", "blas_flops_s" } },
    [LIMITS_MODEL] = { "model",
                       30 * DAY_S,
                       { "n_token",  "share_0",  "share_1",  "share_2",  "share_3", "share_4",
                         "share_5",  "share_6",  "share_7",  "share_8",  "share_9", "share_10",
                         "share_11", "share_12", "share_13", "share_14", "share_15" } },
    [LIMITS_ANCHOR] = { "anchor",
                        DAY_S,
                        { "measured_s", "n_token", "n_thread", "kernels", "io", "exact",
                          "memory_bytes", "n_ctx", "chunk", "kv_k", "kv_v", "disk_rate",
                          "streamed_share", "missed_share", "keeps_rows", "starts_cold",
                          "n_slot", "n_seen", "token_s", "stall_s", "lookup_s", "attention_s",
                          "others_s", "fixed_s", "disk_bytes", "disk_bytes_s", "crowding",
                          "ran_s" } },
    [LIMITS_TRIED] = { "tried",
                       30 * DAY_S,
                       { "memory_bytes", "n_ctx", "kv_k", "kv_v", "n_thread", "io", "chunk",
                         "disk_rate", "exact", "n_token", "tps", "wait_share", "peak_bytes",
                         "measured_s" } },
};

/* --- lines --- */

static void json_of_line(struct json *j, const struct limits_line *l)
{
    json_object(j, NULL);
    json_string(j, "kind", kinds[l->kind].name);
    json_string(j, "of", l->of);
    json_u64(j, "time", (uint64_t)l->time_s);
    json_bool(j, "doubtful", l->is_doubtful);
    if (l->text[0] != '\0')
        json_string(j, "text", l->text);
    for (int i = 0; i < LIMITS_VALUES && kinds[l->kind].value[i] != NULL; i++)
        json_double(j, kinds[l->kind].value[i], l->value[i], l->value[i] < 1 ? 15 : 3);
    json_end(j);
    json_line(j);
}

static bool read_text(const struct json_node *line, const char *key, char *buf, size_t n)
{
    const char *text = json_as_string(json_get(line, key));

    return text != NULL && (size_t)snprintf(buf, n, "%s", text) < n;
}

static bool read_kind(const struct json_node *line, enum limits_kind *kind)
{
    char name[16];

    if (!read_text(line, "kind", name, sizeof name))
        return false;
    for (int i = 0; i < LIMITS_KINDS; i++)
        if (strcmp(name, kinds[i].name) == 0) {
            *kind = (enum limits_kind)i;
            return true;
        }
    return false;
}

/* Returns whether the line makes sense. */
static bool read_line(const char *text, struct limits_line *l)
{
    const struct json_node *root;
    struct err ignored = ERR_INIT;
    struct json_doc *doc;
    bool is_right;

    *l = (struct limits_line){ 0 };
    if (json_parse(&doc, text, strlen(text), &ignored) != 0)
        return false;
    root = json_root(doc);
    is_right = read_kind(root, &l->kind) && read_text(root, "of", l->of, sizeof l->of) &&
               json_as_int(json_get(root, "time"), &l->time_s) && l->time_s > 0 &&
               json_as_bool(json_get(root, "doubtful"), &l->is_doubtful) &&
               (json_get(root, "text") == NULL ||
                read_text(root, "text", l->text, sizeof l->text));
    for (int i = 0; is_right && i < LIMITS_VALUES && kinds[l->kind].value[i] != NULL; i++)
        is_right = json_as_float(json_get(root, kinds[l->kind].value[i]), &l->value[i]) &&
                   l->value[i] >= 0 && l->value[i] <= VALUE_MOST;
    json_free(doc);
    return is_right;
}

/* --- the store --- */

/* Make room for one line more. */
static bool grow(struct limits_store *s)
{
    struct limits_line *line;

    if ((s->n & (s->n - 1)) != 0 && s->n > 0)
        return true;
    line = realloc(s->line, (s->n > 0 ? 2 * s->n : 1) * sizeof *line);
    if (line == NULL)
        return false;
    s->line = line;
    return true;
}

static int lines_most(enum limits_kind kind)
{
    return kind == LIMITS_TRIED ? TRIED_MOST : LINES_MOST;
}

void limits_store_parse(struct limits_store *s, char *text)
{
    int n[LIMITS_KINDS] = { 0 };
    char *line;

    *s = (struct limits_store){ 0 };
    while ((line = strsep(&text, "\n")) != NULL && grow(s)) {
        struct limits_line *l = &s->line[s->n];

        s->n += read_line(line, l) && n[l->kind]++ < lines_most(l->kind);
    }
}

void limits_store_read(struct limits_store *s, const char *path)
{
    struct err ignored = ERR_INIT;
    char *text = small_file_read_own(path, STORE_FILE_MOST, NULL, &ignored);

    limits_store_parse(s, text);
    free(text);
}

void limits_store_free(struct limits_store *s)
{
    free(s->line);
    *s = (struct limits_store){ 0 };
}

static bool is_valid(const struct limits_line *l, int64_t now_s)
{
    int64_t life_s = kinds[l->kind].life_s;

    if (l->is_doubtful)
        life_s = l->kind == LIMITS_WAYS || l->kind == LIMITS_THREADS ? DOUBTFUL_WAYS_S
                                                                      : DOUBTFUL_S;
    return l->time_s <= now_s && now_s - l->time_s <= life_s;
}

const struct limits_line *limits_store_find_like(const struct limits_store *s,
                                                 enum limits_kind kind, const char *beginning,
                                                 int64_t now_s)
{
    size_t n = strlen(beginning);

    for (size_t i = 0; i < s->n; i++)
        if (s->line[i].kind == kind && strncmp(s->line[i].of, beginning, n) == 0 &&
            is_valid(&s->line[i], now_s))
            return &s->line[i];
    return NULL;
}

const struct limits_line *limits_store_find(const struct limits_store *s, enum limits_kind kind,
                                            const char *of, int64_t now_s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->line[i].kind == kind && strcmp(s->line[i].of, of) == 0 &&
            is_valid(&s->line[i], now_s))
            return &s->line[i];
    return NULL;
}

const struct limits_line *limits_store_last(const struct limits_store *s, enum limits_kind kind,
                                            const char *of)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->line[i].kind == kind && strcmp(s->line[i].of, of) == 0)
            return &s->line[i];
    return NULL;
}

/* Does a new line replace an old one: of the same thing, or of another weight type of the same
 * kernels and threads that it contradicts, unless both were measured in one go? */
static bool is_replaced(const struct limits_line *old, const struct limits_line *l)
{
    const char *type = strrchr(l->of, ' '), *old_type = strrchr(old->of, ' ');

    if (old->kind != l->kind)
        return false;
    if (strcmp(old->of, l->of) == 0)
        return l->kind != LIMITS_TRIED ||
               memcmp(old->value, l->value, TRIED_SETTINGS * sizeof l->value[0]) == 0;
    return l->kind == LIMITS_TYPE && llabs(l->time_s - old->time_s) > LIMITS_ONE_GO_S &&
           type != NULL && old_type != NULL &&
           type - l->of == old_type - old->of &&
           memcmp(l->of, old->of, (size_t)(type - l->of)) == 0 &&
           !limits_types_agree(type + 1, l->value[0], old_type + 1, old->value[0]);
}

/* Count the tried settings of the model of l; is this line more than a model may have? */
static bool is_one_too_many(const struct limits_line *old, const struct limits_line *l,
                            size_t *n_tried)
{
    return l->kind == LIMITS_TRIED && old->kind == LIMITS_TRIED &&
           strcmp(old->of, l->of) == 0 && ++*n_tried > MW_TRIED_MOST;
}

/* Does this old line keep the new one out?  A trusted line does so if the new one is doubtful.  The
 * first choice of products with an OpenBLAS always does: if two programs measured at the same time,
 * the second would otherwise change the answers of the first.  So do the first choices of a form
 * and of a number of threads, which would otherwise change from day to day. */
static bool is_kept(const struct limits_line *old, const struct limits_line *l)
{
    bool is_first = (l->kind == LIMITS_PRODUCT || l->kind == LIMITS_FORM ||
                     l->kind == LIMITS_THREADS) &&
                    strcmp(old->text, l->text) == 0;

    return is_replaced(old, l) && is_valid(old, l->time_s) && !old->is_doubtful &&
           (l->is_doubtful || is_first);
}

/* Is the same measurement there already?  Tried settings come in the order of their use. */
static bool is_there(const struct limits_line *old, const struct limits_line *l)
{
    return l->kind != LIMITS_TRIED && old->kind == l->kind && strcmp(old->of, l->of) == 0 &&
           old->time_s == l->time_s && old->is_doubtful == l->is_doubtful &&
           strcmp(old->text, l->text) == 0 &&
           memcmp(old->value, l->value, sizeof old->value) == 0;
}

bool limits_store_add(struct limits_store *s, const struct limits_line *l)
{
    size_t kept = 0, n_tried = 1;

    for (size_t i = 0; i < s->n; i++)
        if (is_kept(&s->line[i], l) || is_there(&s->line[i], l))
            return false;
    if (!grow(s))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (!is_replaced(&s->line[i], l) && !is_one_too_many(&s->line[i], l, &n_tried))
            s->line[kept++] = s->line[i];
    memmove(&s->line[1], &s->line[0], kept * sizeof s->line[0]);
    s->line[0] = *l;
    s->n = kept + 1;
    return true;
}

size_t limits_store_tried(const struct limits_store *s, const char *of, int64_t now_s,
                          struct mw_tried *list)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n && n < MW_TRIED_MOST; i++)
        if (s->line[i].kind == LIMITS_TRIED && strcmp(s->line[i].of, of) == 0 &&
            is_valid(&s->line[i], now_s) && tried_of_line(&s->line[i], &list[n]))
            n++;
    return n;
}

void limits_store_print(const struct limits_store *s, struct json *j)
{
    for (size_t i = 0; i < s->n; i++)
        json_of_line(j, &s->line[i]);
}

static void write_store(const struct limits_store *s, const char *path)
{
    struct err ignored = ERR_INIT;
    struct new_file file;
    struct json j;

    if (new_file_begin(&file, path, true, &ignored) != 0)
        return;
    json_start_stream(&j, file.f);
    limits_store_print(s, &j);
    new_file_end(&file, &ignored);
}

/* Wait for the lock of the folder that path is in.  A program that was stopped while it had the
 * lock may never give it back; then go on without: the file is replaced as a whole, so at worst
 * lines of another program are lost.  Returns a descriptor, or -1. */
static int lock_folder(const char *path)
{
    size_t n = strrchr(path, '/') != NULL ? (size_t)(strrchr(path, '/') - path) : 0;
    const struct timespec nap = { .tv_nsec = LOCK_NAP_NS };
    char folder[4096];
    int fd;

    if (snprintf(folder, sizeof folder, "%.*s/", (int)n, path) >= (int)sizeof folder)
        return -1;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems have no locks. */
    for (int i = 0; i < LOCK_NAPS && fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        nanosleep(&nap, NULL);
    }
    return fd;
}

void limits_store_keep(const char *path, const struct limits_line *lines, size_t n)
{
    struct limits_store s;
    bool is_new = false;
    int lock;

    if (n == 0 || folder_make_parent(path) != 0)
        return;
    lock = lock_folder(path);
    limits_store_read(&s, path);
    for (size_t i = 0; i < n; i++)
        is_new |= limits_store_add(&s, &lines[i]);
    if (is_new)
        write_store(&s, path);
    limits_store_free(&s);
    if (lock >= 0)
        close(lock);
}

/* --- limits as lines --- */

void limits_model_of(const char *path, char *buf, size_t n)
{
    struct stat st;

    buf[0] = '\0';
    if (stat(path, &st) == 0)
        snprintf(buf, n, "%ju %ju %jd %jd.%09ld %jd.%09ld", (uintmax_t)st.st_dev,
                 (uintmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
                 st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

void limits_name(const struct limits_key *k, enum limits_kind kind, const char *type,
                 char of[200])
{
    size_t n = 200;

    switch (kind) {
    case LIMITS_DISK:
        snprintf(of, n, "%s%" PRIu64 " %s %d %s %" PRIu64, k->is_small ? "small " : "", k->dev,
                 k->io, k->n_thread, k->cpu, k->read_kib);
        break;
    case LIMITS_TYPE:
    case LIMITS_STEPS:
    case LIMITS_WAYS:
    case LIMITS_FORM:
        snprintf(of, n, "%s %s %s %s %d %s", k->build, k->cpu, k->kernels,
                 k->exact ? "exact" : "usual", k->n_thread,
                 kind == LIMITS_STEPS   ? "steps"
                 : kind == LIMITS_WAYS  ? "ways"
                                        : type);
        break;
    case LIMITS_THREADS:
        snprintf(of, n, "%s %s %s %d %d", k->build, k->cpu, k->kernels, k->n_core, k->n_cpu);
        break;
    case LIMITS_PRODUCT: /* measured with one thread */
        snprintf(of, n, "%s %s %s %s %s", k->build, k->cpu, k->kernels,
                 k->exact ? "exact" : "usual", type);
        break;
    case LIMITS_TRIED:
    case LIMITS_ANCHOR: snprintf(of, n, "%s %s", k->cpu, k->model); break;
    case LIMITS_MODEL:
    case LIMITS_KINDS: snprintf(of, n, "%s", k->model); break;
    }
}

/* The disk: measured with reads of this size, else of any size. */
static const struct limits_line *find_disk(const struct limits_store *s,
                                           const struct limits_key *k, int64_t now_s)
{
    const struct limits_line *l;
    char of[200];

    limits_name(k, LIMITS_DISK, "", of);
    l = limits_store_find(s, LIMITS_DISK, of, now_s);
    if (l != NULL)
        return l;
    strrchr(of, ' ')[1] = '\0';
    return limits_store_find_like(s, LIMITS_DISK, of, now_s);
}

/* A file that is too small to measure: its disk is as fast as for others. */
static double borrowed_disk(const struct limits_store *s, const struct limits_key *k,
                            int64_t now_s)
{
    char beginning[64];

    snprintf(beginning, sizeof beginning, "%" PRIu64 " %s ", k->dev, k->io);
    for (size_t i = 0; i < s->n; i++)
        if (s->line[i].kind == LIMITS_DISK && s->line[i].value[0] > 0 &&
            strncmp(s->line[i].of, beginning, strlen(beginning)) == 0 &&
            is_valid(&s->line[i], now_s))
            return s->line[i].value[0];
    return 0;
}

static void get_disk(const struct limits_store *s, const struct limits_key *k, int64_t now_s,
                     struct mw_limits *l)
{
    const struct limits_line *found = find_disk(s, k, now_s);
    const double *v;

    if (found == NULL)
        return;
    v = found->value;
    l->disk_bytes_s = v[0] > 0 ? v[0] : borrowed_disk(s, k, now_s);
    l->memory_bytes_s = v[1];
    l->direct_bytes_s = v[2];
    l->buffered_bytes_s = v[3];
    l->lookup_s = v[4];
    l->read_cpu_s = v[5];
    l->contention = v[6];
    l->fresh_bytes_s = v[7];
    l->is_doubtful = found->is_doubtful;
    l->measured_s = found->time_s;
}

/* The costs in the order of the line. */
static size_t list_costs(struct mw_steps *s, double *cost[LIMITS_VALUES])
{
    size_t n = 0;

    cost[n++] = &s->round_s;
    cost[n++] = &s->wake_s;
    cost[n++] = &s->value_s;
    cost[n++] = &s->curve_s;
    for (int i = 0; i < MW_STEPS_KV; i++)
        cost[n++] = &s->load_s[i];
    for (int i = 0; i < MW_STEPS_KV; i++)
        cost[n++] = &s->mac_s[i];
    return n;
}

static void get_steps(const struct limits_store *s, const struct limits_key *k, int64_t now_s,
                      struct mw_steps *steps)
{
    const struct limits_line *found;
    double *cost[LIMITS_VALUES];
    char of[200];

    limits_name(k, LIMITS_STEPS, "", of);
    found = limits_store_find(s, LIMITS_STEPS, of, now_s);
    if (found == NULL || steps->measured_s != 0)
        return;
    for (size_t i = 0, n = list_costs(steps, cost); i < n; i++)
        *cost[i] = found->value[i];
    steps->is_doubtful = found->is_doubtful;
    steps->measured_s = found->time_s;
}

static void get_ways(const struct limits_store *s, const struct limits_key *k, int64_t now_s,
                     struct mw_ways *w)
{
    const struct limits_line *found;
    char of[200];

    limits_name(k, LIMITS_WAYS, "", of);
    found = limits_store_last(s, LIMITS_WAYS, of);
    if (found == NULL || w->measured_s != 0)
        return;
    for (int i = 0; i < MW_WAY_CHOICES; i++)
        w->way[i] = (uint32_t)fmin(found->value[i], UINT8_MAX);
    w->is_known = true;
    w->is_doubtful = found->is_doubtful;
    w->measured_s = is_valid(found, now_s) ? found->time_s : 0;
}

bool limits_store_threads(const struct limits_store *s, const struct limits_key *k,
                          int64_t now_s, struct mw_threads *t)
{
    const struct limits_line *found;
    char of[200];

    limits_name(k, LIMITS_THREADS, "", of);
    found = limits_store_find(s, LIMITS_THREADS, of, now_s);
    *t = (struct mw_threads){ .n_core = k->n_core, .n_cpu = k->n_cpu };
    if (found == NULL)
        return false;
    t->core_s = found->value[0];
    t->fewer_s = found->value[1];
    t->cpu_s = found->value[2];
    t->is_doubtful = found->is_doubtful;
    t->measured_s = found->time_s;
    return true;
}

static void get_rate(const struct limits_store *s, const struct limits_key *k, int64_t now_s,
                     struct mw_rate *r)
{
    const struct limits_line *found;
    char of[200];

    limits_name(k, LIMITS_TYPE, r->type, of);
    found = limits_store_find(s, LIMITS_TYPE, of, now_s);
    if (found == NULL || r->measured_s != 0)
        return;
    r->column_bytes_s = found->value[0];
    r->chunk_flops_s = found->value[1];
    r->few_bytes_s = found->value[2];
    r->is_doubtful = found->is_doubtful;
    r->measured_s = found->time_s;
}

static void get_use(const struct limits_store *s, const struct limits_key *k, int64_t now_s,
                    struct mw_expert_use *c)
{
    const struct limits_line *found;

    *c = (struct mw_expert_use){ 0 };
    if (k->model[0] == '\0')
        return;
    found = limits_store_find(s, LIMITS_MODEL, k->model, now_s);
    if (found == NULL)
        return;
    c->n_token = found->value[0];
    memcpy(c->share, found->value + 1, sizeof c->share);
    c->observed_s = found->time_s;
}

bool limits_store_get(const struct limits_store *s, const struct limits_key *k, int64_t now_s,
                      struct mw_limits *l)
{
    bool has_all;

    l->n_thread = k->n_thread;
    get_disk(s, k, now_s, l);
    get_ways(s, k, now_s, &l->ways);
    get_steps(s, k, now_s, &l->steps);
    get_use(s, k, now_s, &l->expert_use);
    has_all = l->memory_bytes_s > 0 && l->steps.measured_s != 0 && l->ways.measured_s != 0;
    for (uint32_t i = 0; i < l->n_rate; i++) {
        get_rate(s, k, now_s, &l->rate[i]);
        has_all &= l->rate[i].measured_s != 0;
    }
    return has_all;
}

/* A line without values. */
static struct limits_line line_of(const struct limits_key *k, enum limits_kind kind,
                                  const char *type, int64_t time_s, bool is_doubtful)
{
    struct limits_line l = { .kind = kind, .time_s = time_s, .is_doubtful = is_doubtful };

    limits_name(k, kind, type, l.of);
    return l;
}

struct limits_line limits_threads_line(const struct limits_key *k, const struct mw_threads *t)
{
    struct limits_line l = line_of(k, LIMITS_THREADS, "", t->measured_s, t->is_doubtful);

    l.value[0] = t->core_s;
    l.value[1] = t->fewer_s;
    l.value[2] = t->cpu_s;
    return l;
}

size_t limits_store_lines(const struct limits_key *k, const struct mw_limits *l,
                          struct limits_line lines[LIMITS_LINES])
{
    struct mw_steps steps = l->steps;
    size_t n = 0;

    for (uint32_t i = 0; i < l->n_rate; i++) {
        const struct mw_rate *r = &l->rate[i];

        if (r->measured_s == 0)
            continue;
        lines[n] = line_of(k, LIMITS_TYPE, r->type, r->measured_s, r->is_doubtful);
        lines[n].value[0] = r->column_bytes_s;
        lines[n].value[1] = r->chunk_flops_s;
        lines[n++].value[2] = r->few_bytes_s;
    }
    if (l->ways.measured_s != 0) {
        lines[n] =
            line_of(k, LIMITS_WAYS, "", l->ways.measured_s, l->ways.is_doubtful);
        for (int i = 0; i < MW_WAY_CHOICES; i++)
            lines[n].value[i] = l->ways.way[i];
        n++;
    }
    if (steps.measured_s != 0) {
        double *cost[LIMITS_VALUES];

        lines[n] = line_of(k, LIMITS_STEPS, "", steps.measured_s, steps.is_doubtful);
        for (size_t i = 0, n_cost = list_costs(&steps, cost); i < n_cost; i++)
            lines[n].value[i] = *cost[i];
        n++;
    }
    if (l->expert_use.observed_s != 0 && k->model[0] != '\0') {
        lines[n] = line_of(k, LIMITS_MODEL, "", l->expert_use.observed_s, false);
        lines[n].value[0] = l->expert_use.n_token;
        memcpy(lines[n++].value + 1, l->expert_use.share, sizeof l->expert_use.share);
    }
    if (l->measured_s != 0) {
        const double values[] = { l->disk_bytes_s,     l->memory_bytes_s, l->direct_bytes_s,
                                  l->buffered_bytes_s, l->lookup_s,       l->read_cpu_s,
                                  l->contention,       l->fresh_bytes_s };

        lines[n] = line_of(k, LIMITS_DISK, "", l->measured_s, l->is_doubtful);
        memcpy(lines[n++].value, values, sizeof values);
    }
    return n;
}
