#include "config.h"

#include "engine/compute/quantise.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "engine/compute/half.h"

#define BLOCK 256
#define RUN   16 /* values that share a scale */
#define RUNS  (BLOCK / RUN)
#define LANES 4 /* sums that are independent of each other */

/* A scale below this has no finite inverse: its values become 0. */
#define SMALLEST_SCALE 1e-37f

static float inverse(float d)
{
    return fabsf(d) >= SMALLEST_SCALE ? 1 / d : 0;
}

/* The nearest integer from `least` to `most`, which are small; `least` if v is not a number. */
static int level(float v, int least, int most)
{
    v -= (float)least;
    v = v > 0 ? v : 0;
    v = v < (float)(most - least) ? v : (float)(most - least);
    return (int)(v + 0.5f) + least;
}

static bool is_finite(const float x[BLOCK])
{
    int n = 0;

    for (int i = 0; i < BLOCK; i++)
        n += (bits_of_float(x[i]) & 0x7f800000) != 0x7f800000;
    return n == BLOCK;
}

static float sum(const float lane[LANES])
{
    return lane[0] + lane[1] + (lane[2] + lane[3]);
}

/* Two bits of value i go where dequant.c finds them. */
static void put_two_bits(uint8_t q[64], int i, int bits)
{
    q[32 * (i / 128) + i % 32] |= (uint8_t)(bits << (2 * (i % 128 / 32)));
}

/* --- Q3_K: x = d * scale * q, with scales from -32 to 31 and q from -4 to 3 --- */

/* Returns the best of a few scales for x = scale * q: the value with the largest magnitude is the
 * lowest level, or somewhat more than that, or less. */
static float scale_of_3_bits(const float x[RUN])
{
    float largest = 0, best = 0, scale = 0;

    for (int i = 0; i < RUN; i++)
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    for (int t = 0; t < 4; t++) {
        float by = -(3.3f + 0.4f * (float)t) * inverse(largest), xl, ll;
        float xls[LANES] = { 0 }, lls[LANES] = { 0 };

        for (int i = 0; i < RUN; i += LANES)
            for (int k = 0; k < LANES; k++) {
                float l = (float)level(x[i + k] * by, -4, 3);

                xls[k] += x[i + k] * l;
                lls[k] += l * l;
            }
        xl = sum(xls);
        ll = sum(lls);
        if (ll > 0 && xl * xl > best * ll) {
            best = xl * xl / ll;
            scale = xl / ll;
        }
    }
    return scale;
}

static void store_q3_k(const float x[BLOCK], struct block_q3_k *b)
{
    float scales[RUNS], largest = 0, d;

    memset(b, 0, sizeof *b);
    for (int r = 0; r < RUNS; r++) {
        scales[r] = scale_of_3_bits(x + r * RUN);
        largest = fabsf(scales[r]) > fabsf(largest) ? scales[r] : largest;
    }
    store_u16(b->d, f16_of_f32(is_finite(x) ? largest / -32 : NAN));
    d = f32_of_f16(load_u16(b->d));
    for (int r = 0; r < RUNS; r++) {
        int s = level(scales[r] * inverse(d), -32, 31), bits = s + 32;
        float by = inverse(d * (float)s);

        b->scales[r % 8] |= (uint8_t)((bits & 15) << (4 * (r / 8)));
        b->scales[8 + r % 4] |= (uint8_t)(bits >> 4 << (2 * (r / 4)));
        for (int i = r * RUN; i < (r + 1) * RUN; i++) {
            int q = level(x[i] * by, -4, 3) + 4;

            put_two_bits(b->q, i, q & 3);
            b->high[i % 32] |= (uint8_t)(q >> 2 << (i / 32));
        }
    }
}

/* --- Q2_K: x = d * scale * q - dmin * minimum, with scales and minima from 0 to 15 and q from 0
 * to 3 --- */

struct line {
    float scale, minimum; /* x = scale * q - minimum, both at least 0 */
};

/* Returns the line with the least squared error through x at these levels. */
static struct line line_through(const float x[RUN], const int q[RUN])
{
    float s[LANES] = { 0 }, sq[LANES] = { 0 }, sx[LANES] = { 0 }, sqx[LANES] = { 0 };
    float n = RUN, q1, q2, x1, qx, det;
    struct line l;

    for (int i = 0; i < RUN; i += LANES)
        for (int k = 0; k < LANES; k++) {
            float v = (float)q[i + k];

            s[k] += v;
            sq[k] += v * v;
            sx[k] += x[i + k];
            sqx[k] += x[i + k] * v;
        }
    q1 = sum(s);
    q2 = sum(sq);
    x1 = sum(sx);
    qx = sum(sqx);
    det = n * q2 - q1 * q1;
    if (!(det > 0) && x1 < 0) /* one level for all */
        return (struct line){ 0, -x1 / n };
    if (!(det > 0))
        return (struct line){ q1 > 0 ? x1 / q1 : 0, 0 };
    l = (struct line){ (n * qx - q1 * x1) / det, (q1 * qx - q2 * x1) / det };
    if (l.minimum < 0) /* through 0, then */
        l = (struct line){ qx / q2, 0 };
    if (!(l.scale > 0))
        l.scale = 0;
    return l;
}

static void levels_of(const float x[RUN], struct line l, int q[RUN])
{
    float by = inverse(l.scale);

    for (int i = 0; i < RUN; i++)
        q[i] = level((x[i] + l.minimum) * by, 0, 3);
}

static float error_of(const float x[RUN], const int q[RUN], struct line l)
{
    float lane[LANES] = { 0 };

    for (int i = 0; i < RUN; i += LANES)
        for (int k = 0; k < LANES; k++) {
            float off = l.scale * (float)q[i + k] - l.minimum - x[i + k];

            lane[k] += off * off;
        }
    return sum(lane);
}

/* From lines that leave out more or less of both ends. */
static struct line line_of_2_bits(const float x[RUN])
{
    float least = 0, most = x[0], best = INFINITY;
    struct line found;

    for (int i = 0; i < RUN; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    found = (struct line){ most - least, -least }; /* if errors are too large for a float */
    for (int t = 0; t < 4; t++) {
        struct line l = { (most - least) / (2.6f + 0.4f * (float)t), -least };
        float off;
        int q[RUN];

        levels_of(x, l, q);
        l = line_through(x, q);
        levels_of(x, l, q);
        off = error_of(x, q, l);
        if (off < best) {
            best = off;
            found = l;
        }
    }
    return found;
}

static void store_q2_k(const float x[BLOCK], struct block_q2_k *b)
{
    float scale = 0, minimum = 0, d, dmin;
    struct line lines[RUNS];

    memset(b, 0, sizeof *b);
    for (int r = 0; r < RUNS; r++) {
        lines[r] = line_of_2_bits(x + r * RUN);
        scale = lines[r].scale > scale ? lines[r].scale : scale;
        minimum = lines[r].minimum > minimum ? lines[r].minimum : minimum;
    }
    store_u16(b->d, f16_of_f32(is_finite(x) ? scale / 15 : NAN));
    store_u16(b->dmin, f16_of_f32(minimum / 15));
    d = f32_of_f16(load_u16(b->d));
    dmin = f32_of_f16(load_u16(b->dmin));
    for (int r = 0; r < RUNS; r++) {
        int s = level(lines[r].scale * inverse(d), 0, 15);
        int m = level(lines[r].minimum * inverse(dmin), 0, 15);
        struct line l = { d * (float)s, dmin * (float)m };
        int q[RUN];

        b->scales[r] = (uint8_t)(s | m << 4);
        levels_of(x + r * RUN, l, q);
        for (int i = 0; i < RUN; i++)
            put_two_bits(b->q, r * RUN + i, q[i]);
    }
}

void quantise_row(enum tensor_type type, const float *src, size_t n, void *dst)
{
    unsigned char *to = dst;

    assert((type == TYPE_Q3_K || type == TYPE_Q2_K) && n % BLOCK == 0);
    for (size_t i = 0; i < n; i += BLOCK, to += tensor_row_bytes(type, BLOCK)) {
        if (type == TYPE_Q3_K)
            store_q3_k(src + i, (struct block_q3_k *)(void *)to);
        else
            store_q2_k(src + i, (struct block_q2_k *)(void *)to);
    }
}
