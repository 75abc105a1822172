#include "config.h"

#include "engine/machine/slices.h"

void slices_add(struct slices *s, double rate)
{
    uint32_t i = s->n;

    if (s->n == SLICES_MAX)
        return;
    for (; i > 0 && s->rate[i - 1] > rate; i--)
        s->rate[i] = s->rate[i - 1];
    s->rate[i] = rate;
    s->n++;
}

double slices_rate(const struct slices *s)
{
    uint32_t middle = s->n / 2;

    if (s->n == 0)
        return 0;
    return s->n % 2 == 1 ? s->rate[middle] : (s->rate[middle - 1] + s->rate[middle]) / 2;
}

double slices_spread(const struct slices *s)
{
    double rate = slices_rate(s), low, high;

    if (s->n < 2 || !(rate > 0))
        return 0;
    low = s->rate[0];
    high = s->rate[s->n - 1];
    if (s->n >= 4 && rate - low > high - rate)
        low = s->rate[1];
    else if (s->n >= 4)
        high = s->rate[s->n - 2];
    return (high - low) / 2 / rate;
}
