/*
 * bench_instructions - the instructions that a product executes, for instructions.py.
 *
 *     bench_instructions SET TYPE FORM ROWS COLUMNS        FORM: file, interleaved
 *
 * A child process multiplies, and this one executes it instruction by instruction and counts each
 * address.  It prints "ADDRESS COUNT" lines, with addresses as objdump prints them.  Rows have 2048
 * values.  Weights and columns are zeros: no kernel looks at values.
 */
#include "config.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/compute/interleave.h"
#include "engine/compute/kernels.h"

enum { N_K = 2048, MOST_ROWS = 128, MOST_COLS = 64, VALUE_BYTES = 4 };

/* Where the program is loaded, and its end. */
extern char __executable_start, etext;

static _Alignas(64) uint8_t weights[MOST_ROWS * N_K * VALUE_BYTES];
static float y[MOST_ROWS * MOST_COLS];

static void multiply(const struct kernels *set, const struct matmul *m, bool is_interleaved)
{
    if (is_interleaved)
        set->mul_interleaved(m);
    else
        set->mul(m);
}

#ifdef __x86_64__
static void run_child(const struct kernels *set, const struct matmul *m, bool is_interleaved)
{
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    multiply(set, m, is_interleaved); /* pages and symbols are there now */
    raise(SIGSTOP);
    multiply(set, m, is_interleaved);
    raise(SIGSTOP);
    _exit(0);
}

/* Step from the first stop to the second, and count addresses of this program. */
static int count_steps(pid_t child, uint64_t *count, size_t n)
{
    const uint64_t start = (uint64_t)(uintptr_t)&__executable_start;
    struct user_regs_struct r;
    int status;

    if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
        return -1;
    for (;;) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 ||
            waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
            return -1;
        if (WSTOPSIG(status) != SIGTRAP)
            return 0;
        if (ptrace(PTRACE_GETREGS, child, NULL, &r) != 0)
            return -1;
        if (r.rip >= start && r.rip - start < n)
            count[r.rip - start]++;
    }
}
#endif

static enum tensor_type type_of(const char *name)
{
    int t = 0;

    while (t < TYPE_COUNT && (tensor_type_info((enum tensor_type)t) == NULL ||
                              strcmp(tensor_type_info((enum tensor_type)t)->name, name) != 0))
        t++;
    return (enum tensor_type)t;
}

int main(int argc, char **argv)
{
#ifdef __x86_64__
    const size_t n = (size_t)(&etext - &__executable_start);
    uint64_t *count = calloc(n, sizeof *count);
    const struct kernels *set = argc == 6 ? kernels_by_name(argv[1]) : NULL;
    const enum tensor_type type = set != NULL ? type_of(argv[2]) : TYPE_COUNT;
    struct matmul m = { .type = type, .n_k = N_K, .w = weights, .y = y, .ldy = MOST_ROWS };
    bool is_interleaved;
    pid_t child;
    int rc;

    if (set == NULL || type == TYPE_COUNT || count == NULL)
        return 2;
    is_interleaved = strcmp(argv[3], "interleaved") == 0;
    m.n_row = strtoul(argv[4], NULL, 10);
    m.n_col = strtoul(argv[5], NULL, 10);
    m.form = act_form_of(type, false);
    m.x_stride = act_bytes(m.form, N_K);
    m.x = calloc(MOST_COLS, m.x_stride);
    if (m.x == NULL || m.n_row > MOST_ROWS || m.n_col > MOST_COLS ||
        (is_interleaved && (set->mul_interleaved == NULL || !interleave_takes(type))))
        return 2;
    child = fork();
    if (child == 0)
        run_child(set, &m, is_interleaved);
    rc = child > 0 ? count_steps(child, count, n) : -1;
    if (child > 0)
        (void)kill(child, SIGKILL);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (count[i] > 0)
            printf("%zx %" PRIu64 "\n", i, count[i]);
    return rc == 0 ? 0 : 1;
#else
    (void)argc;
    (void)argv;
    (void)multiply;
    (void)type_of;
    fprintf(stderr, "bench_instructions: only for x86-64\n");
    return 2;
#endif
}
