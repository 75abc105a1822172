/* The measurements of `memwall doctor`: memory, a disk, and arithmetic. */
#include "config.h"

#include <sys/mman.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/api/measure.h"
#include "engine/api/program.h"
#include "engine/base/clock.h"
#include "engine/compute/blas.h"
#include "engine/compute/kernels.h"
#include "engine/compute/processor.h"
#include "engine/machine/machine.h"
#include "engine/machine/probe.h"
#include "engine/machine/survey.h"
#include "engine/model/products.h"
#include "engine/session/model_limits.h"
#include "engine/session/product_choice.h"

#define MEMORY_BUFFER (256 * MIB)
#define DISK_BUFFER   (64 * MIB)
#define FRESH_BYTES   (64 * MIB)
#define SMALL_READ    4096u
#define MEMORY_S      0.3 /* of each measurement */
#define CELL_S        0.15
#define OTHER_S       0.4
#define SMALL_S       0.1

static const size_t blocks[] = { 128 * KIB, 512 * KIB, 2 * MIB, 8 * MIB };
static const uint32_t depths[] = { 1, 2, 4, 8 };
enum { N_BLOCK = sizeof blocks / sizeof blocks[0], N_DEPTH = sizeof depths / sizeof depths[0] };

static void put(const struct mw_doctor *d, const struct mw_fact *f)
{
    d->fact(d->ctx, f);
}

static void put_rate(const struct mw_doctor *d, const char *key, const char *label,
                     const struct probe_rate *r)
{
    struct mw_fact f = { .key = key,
                         .label = label,
                         .unit = MW_UNIT_RATE,
                         .value = r->bytes_s,
                         .spread = r->spread,
                         .why_not = r->bytes > 0 ? NULL : "the file is too small" };

    put(d, &f);
}

static void step(const struct mw_doctor *d, const char *doing)
{
    if (d->step != NULL)
        d->step(d->ctx, doing);
}

static struct probe_options probe_for(const struct mw_doctor *d, double seconds,
                                      uint64_t buffer_bytes)
{
    return (struct probe_options){ .seconds = seconds,
                                   .more_seconds = seconds / 2,
                                   .buffer_bytes = buffer_bytes,
                                   .cancelled = d->cancelled };
}

/* --- memory --- */

/*
 * Measure how long it takes to get fresh memory in huge pages, which the system may not have.
 * Loading a model takes much of it.  Returns the mapping, for munmap(): memory that was given back
 * a moment ago is not fresh, because the host of a virtual machine still has it.
 */
static void *measure_huge(const struct mw_doctor *d)
{
    struct mw_fact f = { .key = "fresh_huge_bytes_s",
                         .label = "fresh memory, huge pages",
                         .unit = MW_UNIT_RATE };
    /* One huge page more, so that the measured part begins at one. */
    unsigned char *all = mmap(NULL, FRESH_BYTES + HUGE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *p = all + (HUGE_BYTES - (uintptr_t)all % HUGE_BYTES) % HUGE_BYTES;
    double from_s;

    if (all == MAP_FAILED) {
        f.why_not = "there is not enough memory";
    } else if (madvise(p, FRESH_BYTES, MADV_HUGEPAGE) != 0) {
        f.why_not = "this system has no huge pages";
    } else {
        from_s = clock_s();
        for (size_t i = 0; i < FRESH_BYTES; i += 4096)
            p[i] = 1;
        f.value = FRESH_BYTES / (clock_s() - from_s);
    }
    put(d, &f);
    return all;
}

/* The same in small pages, as keys and values get theirs. */
static void measure_both_fresh(const struct mw_doctor *d)
{
    const struct probe_options p = probe_for(d, MEMORY_S, FRESH_BYTES);
    struct mw_fact f = { .key = "fresh_bytes_s",
                         .label = "fresh memory, small pages",
                         .unit = MW_UNIT_RATE };
    struct err ignored = ERR_INIT;
    void *huge;

    step(d, "fresh memory");
    if (d->cancelled != NULL && *d->cancelled)
        return;
    huge = measure_huge(d);
    if (probe_fresh(&p, &f.value, &ignored) != 0)
        f.why_not = "there is not enough memory";
    put(d, &f);
    if (huge != MAP_FAILED)
        munmap(huge, FRESH_BYTES + HUGE_BYTES);
}

int mw_doctor_memory(const struct mw_doctor *d, struct err *e)
{
    static const char *const keys[] = { "read_1", "read_2", "read_4", "read_8", "read_16" };
    static const char *const labels[] = { "reading, 1 thread", "reading, 2 threads",
                                          "reading, 4 threads", "reading, 8 threads",
                                          "reading, 16 threads" };
    struct probe_options p = probe_for(d, MEMORY_S, MEMORY_BUFFER);
    struct mw_machine machine;

    step(d, "reading the figures of the system");
    survey_memory("", d->fact, d->ctx);
    mw_machine_read(&machine);
    if (p.buffer_bytes > machine.available_bytes / 4)
        p.buffer_bytes = machine.available_bytes / 4;
    for (int i = 0; i < 5 && 1 << i <= machine.n_cpu; i++) {
        struct probe_rate r = { 0 };

        step(d, labels[i]);
        if (probe_memory(1 << i, &p, &r, e) != 0)
            return -1;
        put_rate(d, keys[i], labels[i], &r);
    }
    measure_both_fresh(d);
    return 0;
}

/* --- disk --- */

/* Measure one cell of the table.  Each starts at other blocks, which no cache has. */
static int measure_cell(const struct mw_doctor *d, int fd, int block, int depth, struct err *e)
{
    struct probe_options p = probe_for(d, CELL_S, DISK_BUFFER);
    struct mw_fact f = { .key = "direct",
                         .label = "direct reads",
                         .unit = MW_UNIT_RATE,
                         .block_bytes = (uint32_t)blocks[block],
                         .depth = depths[depth] };
    struct probe_rate r = { 0 };

    p.first = (uint64_t)(block * N_DEPTH + depth) * 7919;
    if (probe_disk(fd, true, depths[depth], blocks[block], &p, &r, e) != 0)
        return -1;
    f.value = r.bytes_s;
    f.spread = r.spread;
    if (r.bytes == 0)
        f.why_not = "the file is too small";
    put(d, &f);
    return 0;
}

static int measure_direct(const struct mw_doctor *d, int fd, bool *is_possible, struct err *e)
{
    struct mw_fact f = { .key = "direct_reads", .label = "direct reads" };

    *is_possible = true;
    for (int block = 0; block < N_BLOCK; block++)
        for (int depth = 0; depth < N_DEPTH; depth++) {
            char doing[64];

            snprintf(doing, sizeof doing, "direct reads, %d of %d", block * N_DEPTH + depth + 1,
                     N_BLOCK * N_DEPTH);
            step(d, doing);
            if (measure_cell(d, fd, block, depth, e) == 0)
                continue;
            if (e->code != ERR_UNSUPPORTED)
                return -1;
            *is_possible = false;
            snprintf(f.text, sizeof f.text, "no");
            put(d, &f);
            return 0;
        }
    snprintf(f.text, sizeof f.text, "yes");
    put(d, &f);
    return 0;
}

static int measure_small(const struct mw_doctor *d, int fd, bool is_direct, struct err *e)
{
    struct mw_fact f = { .key = "small_read_s",
                         .label = "one read of 4 KiB",
                         .unit = MW_UNIT_SECONDS };
    struct probe_options p = probe_for(d, SMALL_S, MIB);
    struct probe_rate r = { 0 };

    step(d, "small reads");
    if (probe_disk(fd, is_direct, 1, SMALL_READ, &p, &r, e) != 0)
        return -1;
    f.value = r.bytes_s > 0 ? SMALL_READ / r.bytes_s : 0;
    f.why_not = r.bytes > 0 ? NULL : "the file is too small";
    put(d, &f);
    r = (struct probe_rate){ 0 };
    if (probe_disk(fd, is_direct, 8, SMALL_READ, &p, &r, e) != 0)
        return -1;
    f = (struct mw_fact){ .key = "small_reads_per_s",
                          .label = "reads of 4 KiB a second, 8 at once",
                          .unit = MW_UNIT_COUNT,
                          .value = r.bytes_s / SMALL_READ,
                          .why_not = f.why_not };
    put(d, &f);
    return 0;
}

static int measure_buffered(const struct mw_doctor *d, int fd, struct err *e)
{
    struct probe_options p = probe_for(d, OTHER_S, DISK_BUFFER);
    struct probe_rate r = { 0 };

    step(d, "reads through the page cache");
    p.first = 104729;
    if (probe_disk(fd, false, 8, 2 * MIB, &p, &r, e) != 0)
        return -1;
    put_rate(d, "buffered_bytes_s", "through the page cache", &r);
    step(d, "reads of mapped pages");
    p.first = 15485863;
    r = (struct probe_rate){ 0 };
    if (probe_mapped(fd, &p, &r, e) != 0)
        return -1;
    put_rate(d, "mapped_bytes_s", "as mapped pages (mmap)", &r);
    return 0;
}

/* A file to read: the largest one of the model, or one that is written. */
static int open_file(const struct mw_doctor *d, const struct mw_model *m, const char *folder,
                     struct err *e)
{
    char doing[200];
    int fd;

    if (m != NULL) {
        fd = dup(limits_file(m));
        return fd < 0 ? err_sys(e, "cannot use the file of the model") : fd;
    }
    snprintf(doing, sizeof doing, "writing a temporary file of 128 MiB in %.120s", folder);
    step(d, doing);
    return limits_open_noise(folder, e);
}

int mw_doctor_disk(const struct mw_doctor *d, const struct mw_model *m, const char *folder,
                   struct err *e)
{
    int fd = open_file(d, m, folder, e), rc = -1;
    bool is_direct;

    if (fd < 0)
        return -1;
    survey_disk("", fd, d->fact, d->ctx);
    if (measure_direct(d, fd, &is_direct, e) == 0 && measure_small(d, fd, is_direct, e) == 0 &&
        measure_buffered(d, fd, e) == 0)
        rc = 0;
    close(fd);
    return rc;
}

/* --- arithmetic --- */

static void put_flops(const struct mw_doctor *d, const char *key, const char *label,
                      double flops_s, const char *why_not)
{
    struct mw_fact f = { .key = key,
                         .label = label,
                         .unit = MW_UNIT_FLOPS,
                         .value = flops_s,
                         .why_not = flops_s > 0 ? NULL : why_not };

    put(d, &f);
}

/* Weights of Q8_0 are multiplied with activations of 8 bits. */
static void put_int8(const struct mw_doctor *d, const struct product_rate *r)
{
    struct mw_fact f = { .key = "int8_ops_s",
                         .label = "8 bits by 8 bits, kernels",
                         .unit = MW_UNIT_OPS,
                         .value = r->kernels };

    if (act_form_of(TYPE_Q8_0, false) == ACT_F32)
        f.why_not = "these kernels multiply floats";
    put(d, &f);
}

/* The ways in use, how fast each is, and whether another one is faster now. */
static int put_ways(const struct mw_doctor *d, struct err *e)
{
    const struct mw_options o = { 0 };
    struct mw_choice choices[MW_WAY_CHOICES];

    step(d, "ways of products");
    if (mw_ways_compare(&o, choices, e) != 0)
        return -1;
    for (const struct mw_choice *c = choices; c < choices + MW_WAY_CHOICES; c++) {
        const struct mw_way *used = &c->way[c->chosen], *better = &c->way[c->better];
        struct mw_fact f = { .key = c->key,
                             .label = c->label,
                             .unit = MW_UNIT_RATE,
                             .value = used->bytes_s,
                             .why_not = used->bytes_s > 0
                                            ? NULL
                                            : "not compared: the machine is busy" };

        if (c->n == 0)
            continue;
        snprintf(f.text, sizeof f.text, "%s", used->text);
        if (better != used)
            snprintf(f.text, sizeof f.text, "%s; %.2f times as fast now: %s", used->text,
                     better->bytes_s / used->bytes_s, better->text);
        put(d, &f);
    }
    return 0;
}

int mw_doctor_arithmetic(const struct mw_doctor *d, struct err *e)
{
    static const struct {
        enum tensor_type type;
        const char *key, *label, *blas_key, *blas_label;
    } types[] = {
        { TYPE_F32, "f32_flops_s", "F32, kernels", "f32_openblas_flops_s", "F32, OpenBLAS" },
        { TYPE_BF16, "bf16_flops_s", "BF16, kernels", "bf16_openblas_flops_s",
          "BF16, OpenBLAS" },
        { TYPE_Q8_0, "q8_0_flops_s", "Q8_0, kernels", "q8_0_openblas_flops_s",
          "Q8_0, OpenBLAS" },
        { TYPE_Q4_0, "q4_0_flops_s", "Q4_0, kernels", "q4_0_openblas_flops_s",
          "Q4_0, OpenBLAS" },
        { TYPE_Q4_K, "q4_k_flops_s", "Q4_K, kernels", "q4_k_openblas_flops_s",
          "Q4_K, OpenBLAS" },
    };
    const struct kernels *kernels = kernels_best();
    struct mw_fact f = { .key = "kernels", .label = "kernels" };
    enum blas_state blas;
    int rc = 0;

    step(d, "arithmetic");
    survey_processor("", d->fact, d->ctx);
    snprintf(f.text, sizeof f.text, "%s", kernels->name);
    put(d, &f);
    if (put_ways(d, e) != 0)
        return -1;
    if (processor_amx_denied() != NULL) {
        f = (struct mw_fact){ .key = "kernels_denied", .label = "other kernels" };
        snprintf(f.text, sizeof f.text, "%s", processor_amx_denied());
        put(d, &f);
    }
    blas = blas_open(1);
    f = (struct mw_fact){ .key = "openblas", .label = "OpenBLAS" };
    snprintf(f.text, sizeof f.text, "%s", blas_name());
    if (blas != BLAS_OPEN)
        f.why_not = blas_why_not(blas);
    put(d, &f);
    for (size_t i = 0; i < sizeof types / sizeof types[0] && rc == 0; i++) {
        struct product_rate r = { .type = types[i].type };

        step(d, types[i].label);
        rc = products_measure(kernels, false, blas == BLAS_OPEN, MW_PRODUCT_COLS, &r, 1, e);
        if (rc != 0)
            break;
        put_flops(d, types[i].key, types[i].label, r.kernels, "these kernels do not have it");
        put_flops(d, types[i].blas_key, types[i].blas_label, r.blas, blas_why_not(blas));
        if (types[i].type == TYPE_Q8_0)
            put_int8(d, &r);
    }
    if (blas == BLAS_OPEN)
        blas_close();
    return rc;
}
