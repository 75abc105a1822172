#include "config.h"

#include "engine/compute/blas.h"

#include <sys/mman.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cblas.h>

#include "engine/base/units.h"
#include "engine/compute/interleave.h"

#define BUFFER_BYTES (4 * MIB)  /* of each thread that calls the library */
#define STACK_BYTES  (96 * KIB) /* of each thread that the library starts */

/* Addresses of a buffer: 128 MiB on most processors, 256 MiB on POWER. */
#define MAPPED_BYTES (256 * MIB)

/*
 * The library is loaded at run time, when something asks for it.  Its file has some 36 MB, of
 * which a first start reads 20 MB into the page cache.
 */
static struct {
    pthread_mutex_t lock;
    int n_user;
    int n_buffer; /* buffers that the library has mapped */
    void *handle;
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(openblas_set_num_threads) *set_num_threads;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_get_corename) *get_corename;
    void *(*take)(int); /* what every product takes its buffer with; NULL: not exported */
    void (*give)(void *);
    char name[64];
} lib = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Calls of the library that began, and that returned. */
static _Atomic uint64_t n_begun, n_returned;

static void enter(void)
{
    atomic_fetch_add_explicit(&n_begun, 1, memory_order_relaxed);
}

static void leave(void)
{
    atomic_fetch_add_explicit(&n_returned, 1, memory_order_relaxed);
}

bool blas_is_inside(uint64_t *returned)
{
    *returned = atomic_load(&n_returned);
    return atomic_load(&n_begun) != *returned;
}

/* dlsym() returns an object pointer; POSIX lets it hold a function, ISO C needs the copy. */
static bool find(const char *symbol, void *function, size_t n)
{
    void *found = dlsym(lib.handle, symbol);

    memcpy(function, &found, n);
    return found != NULL;
}

static bool find_all(void)
{
    return find("cblas_sgemm", &lib.sgemm, sizeof lib.sgemm) &&
           find("openblas_set_num_threads", &lib.set_num_threads, sizeof lib.set_num_threads) &&
           find("openblas_get_config", &lib.get_config, sizeof lib.get_config) &&
           find("openblas_get_corename", &lib.get_corename, sizeof lib.get_corename);
}

/* One call is computed by one thread: ours share the tiles among them. */
static bool load(void)
{
    static const char *const files[] = { "libopenblas.so.0", "libopenblas.so" };
    char version[24] = "";

    for (size_t i = 0; lib.handle == NULL && i < sizeof files / sizeof files[0]; i++)
        lib.handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (lib.handle == NULL)
        return false;
    if (!find_all()) {
        dlclose(lib.handle);
        lib.handle = NULL;
        return false;
    }
    if (!find("blas_memory_alloc", &lib.take, sizeof lib.take) ||
        !find("blas_memory_free", &lib.give, sizeof lib.give))
        lib.take = NULL;
    lib.set_num_threads(1);
    (void)sscanf(lib.get_config(), "%*s %23s", version);
    snprintf(lib.name, sizeof lib.name, "openblas %s %.30s", version, lib.get_corename());
    return true;
}

/* Take what is pending of these signals.  Returns whether one came from outside this process. */
static bool take_pending(const sigset_t *set)
{
    const struct timespec at_once = { 0 };
    bool is_from_outside = false;
    siginfo_t info;

    while (sigtimedwait(set, &info, &at_once) > 0)
        is_from_outside |= info.si_code > 0 || info.si_pid != getpid();
    return is_from_outside;
}

/*
 * OpenBLAS starts threads while it is loaded.  They must not take signals that are meant for
 * the program, so all signals are blocked meanwhile.  Where it cannot start a thread it raises
 * SIGINT, which is discarded.  One that a person sends meanwhile is sent again.
 */
static bool load_quietly(void)
{
    sigset_t all, before, pending, interrupt;
    bool is_loaded;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sigpending(&pending);
    is_loaded = load();
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    if (sigismember(&pending, SIGINT) == 0 && take_pending(&interrupt))
        (void)kill(getpid(), SIGINT);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_loaded;
}

static bool can_map(int n)
{
    void *map[BLAS_THREADS + 1];
    int done = 0;
    bool can;

    while (done < n && (map[done] = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
        done++;
    can = done == n;
    while (done > 0)
        munmap(map[--done], MAPPED_BYTES);
    return can;
}

/* A buffer that is given back stays mapped. */
static void map_buffers(int n)
{
    void *taken[BLAS_THREADS];

    if (lib.take != NULL) {
        for (int i = 0; i < n; i++)
            taken[i] = lib.take(0);
        for (int i = 0; i < n; i++)
            lib.give(taken[i]);
    }
    lib.n_buffer = n;
}

/* Called with the lock. */
static enum blas_state open_for(int n_thread)
{
    int n = n_thread < BLAS_THREADS ? n_thread : BLAS_THREADS;
    int n_more = n - lib.n_buffer;

    if (n_more > 0 && !can_map(n_more + 1)) /* with some for the library's file and heap */
        return BLAS_DENIED;
    if (lib.n_user == 0 && !load_quietly())
        return BLAS_MISSING;
    if (n_more > 0)
        map_buffers(n);
    lib.n_user++;
    return BLAS_OPEN;
}

enum blas_state blas_open(int n_thread)
{
    enum blas_state state;

    pthread_mutex_lock(&lib.lock);
    enter();
    state = open_for(n_thread);
    leave();
    pthread_mutex_unlock(&lib.lock);
    return state;
}

void blas_close(void)
{
    pthread_mutex_lock(&lib.lock);
    if (--lib.n_user == 0) {
        enter();
        dlclose(lib.handle);
        leave();
        lib.handle = NULL;
        lib.n_buffer = 0;
        lib.name[0] = '\0';
    }
    pthread_mutex_unlock(&lib.lock);
}

const char *blas_why_not(enum blas_state state)
{
    return state == BLAS_DENIED
               ? "the system refuses the addresses for its buffers (ulimit -v or -d, or "
                 "vm.overcommit_memory)"
               : "it cannot be loaded";
}

const char *blas_name(void)
{
    return lib.name;
}

uint64_t blas_heap_bytes(int n_thread)
{
    long n_cpu = sysconf(_SC_NPROCESSORS_CONF);

    return (uint64_t)n_thread * BUFFER_BYTES + (n_cpu > 0 ? (uint64_t)n_cpu : 1) * STACK_BYTES;
}

size_t blas_tiles(size_t first, size_t n_col)
{
    return (first + n_col + BLAS_COLS - 1) / BLAS_COLS;
}

#define TILE_FLOATS ((size_t)BLAS_ROWS * BLAS_COLS)

size_t blas_scratch_bytes(size_t n_tile)
{
    return ((size_t)BLAS_ROWS * BLAS_DEPTH + n_tile * TILE_FLOATS) * sizeof(float);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Rows of one tile: its first row in the matrix, and which of them are there. */
struct tile_rows {
    size_t at, from, to;
};

static struct tile_rows rows_of_tile(const struct blas_product *p, size_t tile)
{
    struct tile_rows t = { .at = tile * BLAS_ROWS };

    t.from = p->row > t.at ? p->row : t.at;
    t.to = min_size(p->row + p->n_row, t.at + BLAS_ROWS);
    return t;
}

/* Values k .. k + n - 1 of row r. */
static void widen_row(const struct blas_product *p, size_t r, size_t k, size_t n, float *row)
{
    size_t row_bytes = (size_t)tensor_row_bytes(p->type, p->n_k);
    uint8_t part[BLAS_DEPTH * sizeof(float)]; /* as in the file */

    if (p->form == FORM_PACKED) {
        p->set->unpack(p->packed, r, k, n, row);
    } else if (p->form == FORM_INTERLEAVED) {
        interleaved_values(p->type, row_bytes, p->n_row, p->w, r, k, n, part);
        p->set->dequant(p->type, part, row, n);
    } else {
        p->set->dequant(p->type, p->w + r * row_bytes + (size_t)tensor_row_bytes(p->type, k),
                        row, n);
    }
}

/* Values k .. k + n - 1 of the rows, zeros in the other places. */
static void widen(const struct blas_product *p, struct tile_rows t, size_t k, size_t n,
                  float *rows)
{
    for (size_t r = t.at; r < t.at + BLAS_ROWS; r++, rows += n)
        if (r >= t.from && r < t.to)
            widen_row(p, r - p->row, k, n, rows);
        else
            memset(rows, 0, n * sizeof *rows);
}

static void store(const struct blas_product *p, struct tile_rows t, const float *tiles)
{
    for (size_t c = 0; c < p->n_col; c++)
        memcpy(p->y + c * p->ldy + (t.from - p->row),
               tiles + (p->first + c) * BLAS_ROWS + (t.from - t.at),
               (t.to - t.from) * sizeof *tiles);
}

static void multiply_rows(const struct blas_product *p, struct tile_rows t, float *scratch)
{
    size_t n_tile = blas_tiles(p->first, p->n_col);
    float *tiles =
        scratch + (size_t)BLAS_ROWS * BLAS_DEPTH; /* [n_tile][BLAS_COLS][BLAS_ROWS] */

    for (size_t k = 0; k < p->n_k; k += BLAS_DEPTH) {
        size_t n = min_size(BLAS_DEPTH, p->n_k - k);

        widen(p, t, k, n, scratch);
        enter();
        for (size_t i = 0; i < n_tile; i++)
            lib.sgemm(CblasColMajor, CblasTrans, CblasNoTrans, BLAS_ROWS, BLAS_COLS, (int)n, 1,
                      scratch, (int)n, p->x + i * BLAS_COLS * p->ldx + k, (int)p->ldx,
                      k > 0 ? 1 : 0, tiles + i * TILE_FLOATS, BLAS_ROWS);
        leave();
    }
    store(p, t, tiles);
}

void blas_multiply(const struct blas_product *p, int part, int n_part, void *scratch)
{
    size_t first = p->row / BLAS_ROWS;
    size_t n = (p->row + p->n_row + BLAS_ROWS - 1) / BLAS_ROWS - first;
    size_t at = (size_t)part, of = min_size((size_t)n_part, BLAS_THREADS);

    if (at >= of)
        return;
    for (size_t i = n * at / of; i < n * (at + 1) / of; i++)
        multiply_rows(p, rows_of_tile(p, first + i), scratch);
}

void blas_scores(const float *q, const float *k, size_t n, float *scores)
{
    enter();
    lib.sgemm(CblasColMajor, CblasTrans, CblasNoTrans, BLAS_COLS, BLAS_COLS, (int)n, 1, k,
              (int)n, q, (int)n, 0, scores, BLAS_COLS);
    leave();
}

void blas_gather(const float *p, const float *v, size_t n, float *out)
{
    enter();
    lib.sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)n, BLAS_COLS, BLAS_COLS, 1, v,
              (int)n, p, BLAS_COLS, 1, out, (int)n);
    leave();
}
