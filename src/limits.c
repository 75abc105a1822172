/* See limits.h. */
#include "config.h"

#include "src/limits.h"

#include <sys/stat.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "src/paths.h"
#include "ui/term/path.h"

#define KEEP_SECONDS    86400
#define KEEP_LINES      40
#define MEASURE_SECONDS 1.6

/* A cached line is valid only for the same key. */
struct key {
    uint64_t dev;
    char io[16];
    int n_thread;
    char cpu[64];
    char arithmetic[64]; /* weight type, kernels, form of activations; "": any */
};

/* The arithmetic of a line with the rates of disk and memory alone. */
#define NO_ARITHMETIC "none"

/* The processor as one word. */
static void make_cpu(char *cpu, size_t n)
{
    struct mw_machine machine;

    mw_machine_read(&machine);
    snprintf(cpu, n, "%s", machine.cpu[0] != '\0' ? machine.cpu : "?");
    for (char *c = cpu; *c != '\0'; c++)
        if (*c == ' ' || *c == '\t')
            *c = '_';
}

static void make_key(struct key *k, const char *path, const char *type,
                     const struct mw_options *o)
{
    const char *isa = o->isa != NULL ? o->isa : mw_isa(0);
    struct stat st;

    memset(k, 0, sizeof *k);
    snprintf(k->arithmetic, sizeof k->arithmetic, "%s/%s%s", type, isa,
             o->exact ? "/exact" : "");
    snprintf(k->io, sizeof k->io, "%s", mw_io_name(o->io));
    k->n_thread = o->n_thread;
    if (stat(path, &st) == 0)
        k->dev = st.st_dev;
}

/* The part of a key that is the same for all models. */
static void complete_key(struct key *k)
{
    struct mw_machine machine;

    make_cpu(k->cpu, sizeof k->cpu);
    if (k->n_thread > 0)
        return;
    mw_machine_read(&machine);
    k->n_thread = machine.n_cpu;
}

/*
 * Parse a line: time, device, I/O mode, threads, processor, arithmetic, then bytes per second
 * of disk and memory, operations per second, and bytes per second of direct and of buffered
 * reads (0 if they were not compared).  Lines of older versions end before the last two and
 * are measured again.
 */
static bool read_line(const char *line, const struct key *k, int64_t now, struct mw_limits *out)
{
    struct key found = { 0 };
    int64_t at;
    struct mw_limits l;

    if (sscanf(line, "%" SCNd64 " %" SCNu64 " %15s %d %63s %63s %lf %lf %lf %lf %lf", &at,
               &found.dev, found.io, &found.n_thread, found.cpu, found.arithmetic,
               &l.disk_bytes_s, &l.memory_bytes_s, &l.flops_s, &l.direct_bytes_s,
               &l.buffered_bytes_s) != 11)
        return false;
    if (at > now || now - at > KEEP_SECONDS || found.dev != k->dev ||
        found.n_thread != k->n_thread || strcmp(found.io, k->io) != 0 ||
        strcmp(found.cpu, k->cpu) != 0 || !(l.disk_bytes_s > 0) || !(l.memory_bytes_s > 0) ||
        !(l.flops_s >= 0))
        return false;
    if (k->arithmetic[0] == '\0')
        l.flops_s = 0;
    else if (strcmp(found.arithmetic, k->arithmetic) != 0)
        return false;
    *out = l;
    return true;
}

static FILE *open_kept(const char *path)
{
    struct err ignored = ERR_INIT;
    int fd = path_open_file(path, &ignored);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (f == NULL && fd >= 0)
        close(fd);
    return f;
}

static bool find_kept(const char *path, const struct key *k, struct mw_limits *out)
{
    FILE *f = open_kept(path);
    char line[256];
    bool is_found = false;

    if (f == NULL)
        return false;
    while (fgets(line, sizeof line, f) != NULL)
        is_found |= read_line(line, k, (int64_t)time(NULL), out);
    fclose(f);
    return is_found;
}

/* Write the new line and the KEEP_LINES newest old ones. */
static void keep(const char *path, const char *new_line)
{
    FILE *old = open_kept(path);
    struct err ignored = ERR_INIT;
    struct new_file file;
    char line[256];

    if (new_file_begin(&file, path, true, &ignored) == 0) {
        fputs(new_line, file.f);
        for (int i = 0; i < KEEP_LINES && old != NULL && fgets(line, sizeof line, old) != NULL;
             i++)
            fputs(line, file.f);
        new_file_end(&file, &ignored);
    }
    if (old != NULL)
        fclose(old);
}

static void keep_limits(const char *path, const struct key *k, const struct mw_limits *l)
{
    char line[256];

    snprintf(
        line, sizeof line, "%" PRId64 " %" PRIu64 " %s %d %s %s %.0f %.0f %.0f %.0f %.0f\n",
        (int64_t)time(NULL), k->dev, k->io, k->n_thread, k->cpu, k->arithmetic, l->disk_bytes_s,
        l->memory_bytes_s, l->flops_s, l->direct_bytes_s, l->buffered_bytes_s);
    keep(path, line);
}

/* A line of the other file: program, processor, kernels, "exact" or "usual", weight type,
 * operations a second of the kernels and of OpenBLAS, its name.  The last line for a type is
 * not needed: new ones come first. */
static bool find_product(const char *path, const char *cpu, struct mw_products *all,
                         struct mw_product *p)
{
    FILE *f = open_kept(path);
    char line[256];
    bool is_found = false;

    if (f == NULL)
        return false;
    while (!is_found && fgets(line, sizeof line, f) != NULL) {
        char build[48], found[64], kernels[16], exact[8], type[16], blas[64];
        double a, b;

        if (sscanf(line, "%47s %63s %15s %7s %15s %lf %lf %63[^\n]", build, found, kernels,
                   exact, type, &a, &b, blas) != 8 ||
            strcmp(build, BUILD_NAME) != 0 || strcmp(found, cpu) != 0 ||
            strcmp(kernels, all->kernels) != 0 || strcmp(type, p->type) != 0 ||
            (strcmp(exact, "exact") == 0) != all->exact || !(a > 0) || !(b >= 0))
            continue;
        is_found = true;
        p->kernels_flops_s = a;
        p->blas_flops_s = b;
        snprintf(all->blas, sizeof all->blas, "%s", blas);
    }
    fclose(f);
    return is_found;
}

/* Are rates of all weight types kept, and of the OpenBLAS that is installed now if it is to be
 * used? */
static bool find_products(const char *path, const char *cpu, struct mw_model *m,
                          const struct mw_options *o)
{
    struct mw_products p;

    mw_products_list(m, o, &p);
    for (uint32_t i = 0; i < p.n; i++)
        if (!find_product(path, cpu, &p, &p.product[i]))
            return false;
    mw_model_set_products(m, &p);
    return !mw_products_use_blas(m, o) || strcmp(p.blas, mw_blas_name()) == 0;
}

/*
 * These rates are kept for good: OpenBLAS and the kernels round differently, so that a choice
 * that changed from day to day would change answers.  Another version of the program has other
 * kernels and measures again.
 */
static void ensure_products(struct mw_model *m, const struct mw_options *o,
                            const struct paths *paths)
{
    struct err ignored = ERR_INIT;
    struct mw_products p;
    char path[560], cpu[64];

    make_cpu(cpu, sizeof cpu);
    if (paths != NULL) {
        snprintf(path, sizeof path, "%s/products", paths->cache_dir);
        if (find_products(path, cpu, m, o))
            return;
    }
    if (mw_products_measure(m, o, MW_PRODUCT_COLS, &p, &ignored) != 0)
        return;
    mw_model_set_products(m, &p);
    if (paths == NULL)
        return;
    folder_make(paths->cache_dir);
    for (uint32_t i = 0; i < p.n; i++) {
        char line[256];

        snprintf(line, sizeof line, "%s %s %s %s %s %.0f %.0f %s\n", BUILD_NAME, cpu, p.kernels,
                 p.exact ? "exact" : "usual", p.product[i].type, p.product[i].kernels_flops_s,
                 p.product[i].blas_flops_s, p.blas[0] != '\0' ? p.blas : "none");
        keep(path, line);
    }
}

void limits_ensure(struct mw_model *m, const char *model_path, const struct mw_options *o,
                   bool may_measure)
{
    struct err ignored = ERR_INIT;
    struct paths paths;
    struct mw_model_info info;
    struct mw_limits l;
    char path[560];
    struct key k;
    bool has_folder = paths_find(&paths, &ignored) == 0;

    if (o->blas == MW_BLAS_AUTO)
        ensure_products(m, o, has_folder ? &paths : NULL);
    mw_model_info(m, &info);
    make_key(&k, model_path, info.type, o);
    complete_key(&k);
    if (has_folder) {
        snprintf(path, sizeof path, "%s/limits", paths.cache_dir);
        if (find_kept(path, &k, &l)) {
            mw_model_set_limits(m, &l);
            return;
        }
    }
    if (!may_measure || mw_limits_measure(m, o, MEASURE_SECONDS, &l, &ignored) != 0)
        return;
    mw_model_set_limits(m, &l);
    if (has_folder) {
        folder_make(paths.cache_dir);
        keep_limits(path, &k, &l);
    }
}

/* The file of limits, and the part of a key that is the same for all models. */
struct book {
    bool is_read;
    struct key same;
    char lines[KEEP_LINES + 1][256];
    int n;
};

static void read_book(struct book *b)
{
    struct err ignored = ERR_INIT;
    struct paths paths;
    char path[560];
    FILE *f;

    b->is_read = true;
    complete_key(&b->same);
    if (paths_find(&paths, &ignored) != 0)
        return;
    snprintf(path, sizeof path, "%s/limits", paths.cache_dir);
    f = open_kept(path);
    while (f != NULL && b->n <= KEEP_LINES && fgets(b->lines[b->n], 256, f) != NULL)
        b->n++;
    if (f != NULL)
        fclose(f);
}

bool limits_kept(void *ctx, const char *path, const char *type, const struct mw_options *o,
                 struct mw_limits *out)
{
    static struct book book;
    int64_t now = (int64_t)time(NULL);
    struct key k;
    bool is_found = false;

    (void)ctx;
    if (!book.is_read)
        read_book(&book);
    make_key(&k, path, type, o);
    memcpy(k.cpu, book.same.cpu, sizeof k.cpu);
    if (k.n_thread <= 0)
        k.n_thread = book.same.n_thread;
    for (int i = 0; i < book.n; i++)
        is_found |= read_line(book.lines[i], &k, now, out);
    /* Disk and memory are as fast for other types. */
    k.arithmetic[0] = '\0';
    for (int i = 0; i < book.n && !is_found; i++)
        is_found = read_line(book.lines[i], &k, now, out);
    return is_found;
}

void limits_ensure_folder(const char *folder, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    struct paths paths;
    struct mw_limits l;
    char path[560];
    struct key k;

    make_key(&k, folder, "", o);
    complete_key(&k);
    k.arithmetic[0] = '\0';
    if (paths_find(&paths, &ignored) != 0)
        return;
    snprintf(path, sizeof path, "%s/limits", paths.cache_dir);
    if (find_kept(path, &k, &l) ||
        mw_limits_measure_disk(folder, o, MEASURE_SECONDS / 2, &l, &ignored) != 0)
        return;
    snprintf(k.arithmetic, sizeof k.arithmetic, NO_ARITHMETIC);
    folder_make(paths.cache_dir);
    keep_limits(path, &k, &l);
}
