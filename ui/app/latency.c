#include "config.h"

#include "ui/app/latency.h"

#include <stdio.h>
#include <stdlib.h>

void latency_add(struct latency *l, uint64_t ns)
{
    l->late_us[l->n++ % LATENCY_KEPT] = (uint32_t)(ns / 1000);
}

static int compare_u32(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return a < b ? -1 : a > b;
}

void latency_print(struct latency *l)
{
    uint32_t n = l->n < LATENCY_KEPT ? l->n : LATENCY_KEPT;

    qsort(l->late_us, n, sizeof l->late_us[0], compare_u32);
    printf("keys %u", l->n);
    if (n > 0)
        printf(", key to screen: median %.2f ms, 99 %% %.2f ms, longest %.2f ms",
               l->late_us[n / 2] / 1000.0, l->late_us[n * 99 / 100] / 1000.0,
               l->late_us[n - 1] / 1000.0);
}
