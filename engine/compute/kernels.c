#include "config.h"

#include "engine/compute/kernels.h"

#include <pthread.h>
#include <string.h>

#include "engine/compute/kernel_sets.h"
#include "engine/compute/quants.h"

enum { N_SET = sizeof kernel_sets / sizeof kernel_sets[0] };

/* Those that run here, best first.  The last set runs everywhere. */
static const struct kernels *sets[N_SET + 1];
static const char *names[N_SET + 1];

static void list_sets(void)
{
    size_t n = 0;

    for (size_t i = 0; i < N_SET; i++)
        if (kernel_sets[i].runs_here()) {
            sets[n] = kernel_sets[i].set;
            names[n++] = kernel_sets[i].set->name;
        }
}

/* The processor is asked once: cpuid takes many microseconds in a virtual machine. */
static void know_sets(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, list_sets);
}

const char *const *kernels_names(void)
{
    know_sets();
    return names;
}

const struct kernels *kernels_by_name(const char *name)
{
    know_sets();
    for (size_t i = 0; sets[i] != NULL; i++)
        if (strcmp(sets[i]->name, name) == 0)
            return sets[i];
    return NULL;
}

const struct kernels *kernels_best(void)
{
    know_sets();
    return sets[0];
}

enum act_form act_form_of(enum tensor_type weight, bool exact)
{
    switch (weight) {
        BLOCK_TYPES(CASE_OF)
        return exact ? ACT_F32 : ACT_Q8;
        FLOAT_TYPES(CASE_OF)
        OTHER_TYPES(CASE_OF)
        break;
    }
    return ACT_F32;
}

/*
 * Round up to an odd number of cache lines.  Columns a multiple of 4096 bytes apart would
 * compete for the same few lines of the first-level cache.
 */
static size_t odd_lines(size_t bytes)
{
    return ((bytes + 63) / 64 | 1) * 64;
}

size_t act_bytes(enum act_form form, size_t n_k)
{
    if (form == ACT_F32)
        return odd_lines(n_k * sizeof(float));
    return odd_lines(act_q8_spans(n_k) * sizeof(struct act_q8));
}
