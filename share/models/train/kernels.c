/*
 * kernels.c - the parts of a training step that PyTorch 1.13 computes slowly on a CPU.
 *
 * Matrix products stay with PyTorch.  Everything between them is memory-bound: here each
 * stretch is one pass over its rows, forward and backward.  A step takes a third of the time.
 *
 * The residual stream is float; operands and results of products are bfloat16 (uint16_t).
 * Rows are computed in float.  One thread computes; train.py runs several with their own
 * batches. Gradients of weights (dw) are added to.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MAX_ROW = 1024 };

static inline float widen(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint16_t narrow(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline void widen_row(float *to, const uint16_t *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = widen(from[i]);
}

static inline void narrow_row(uint16_t *to, const float *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = narrow(from[i]);
}

static inline float inverse_rms(const float *x, int n, float eps)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return 1 / sqrtf(sum / (float)n + eps);
}

/* d: gradient of the normed row times its weights.  Writes the gradient of x to d. */
static inline void norm_slope(float *d, const float *x, float inverse, int n)
{
    float dot = 0;
    for (int i = 0; i < n; i++)
        dot += d[i] * x[i];
    dot *= inverse * inverse / (float)n;
    for (int i = 0; i < n; i++)
        d[i] = inverse * (d[i] - x[i] * dot);
}

/* exp to 2e-7, in a form that compilers vectorise: 2^n times a polynomial of the rest. */
static inline float fast_exp(float x)
{
    x = x < -87 ? -87 : x > 88 ? 88 : x;
    float t = x * 1.44269504f, n = rintf(t), f = t - n;
    float y = 1.53533e-4f;
    y = y * f + 1.33989e-3f;
    y = y * f + 9.61844e-3f;
    y = y * f + 5.55033e-2f;
    y = y * f + 2.40226e-1f;
    y = y * f + 6.93147e-1f;
    y = y * f + 1;
    int32_t bits;
    memcpy(&bits, &y, 4);
    bits += (int32_t)n * (1 << 23);
    memcpy(&y, &bits, 4);
    return y;
}

/* 0 or 1 / (1 - p) per element: the same for the same seed and element. */
static inline float kept(uint32_t seed, uint32_t i, float p)
{
    uint32_t x = i * 0x9e3779b1u ^ seed;
    x = (x ^ x >> 15) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    x ^= x >> 16;
    return (float)(x >> 8) * 0x1p-24f < p ? 0 : 1 / (1 - p);
}

/* y = norm(x) * w, x float, y bfloat16. */
void norm_forward(uint16_t *y, const float *x, const float *w, long rows, int n, float eps)
{
    for (long r = 0; r < rows; r++) {
        float inverse = inverse_rms(x + r * n, n, eps);
        for (int i = 0; i < n; i++)
            y[r * n + i] = narrow(x[r * n + i] * inverse * w[i]);
    }
}

void norm_backward(float *dx, float *dw, const uint16_t *dy, const float *x, const float *w,
                   long rows, int n, float eps)
{
    for (long r = 0; r < rows; r++) {
        const float *row = x + r * n;
        float d[MAX_ROW];
        float inverse = inverse_rms(row, n, eps);
        widen_row(d, dy + r * n, n);
        for (int i = 0; i < n; i++) {
            dw[i] += d[i] * row[i] * inverse;
            d[i] *= w[i];
        }
        norm_slope(d, row, inverse, n);
        memcpy(dx + r * n, d, sizeof(float) * (size_t)n);
    }
}

/* out = x + dropout(norm(y) * w), y bfloat16. */
void add_norm_forward(float *out, const float *x, const uint16_t *y, const float *w, long rows,
                      int n, float eps, float p, uint32_t seed)
{
    for (long r = 0; r < rows; r++) {
        float row[MAX_ROW];
        widen_row(row, y + r * n, n);
        float inverse = inverse_rms(row, n, eps);
        for (int i = 0; i < n; i++)
            out[r * n + i] =
                x[r * n + i] + row[i] * inverse * w[i] * kept(seed, (uint32_t)(r * n + i), p);
    }
}

void add_norm_backward(uint16_t *dy, float *dw, const float *dout, const uint16_t *y,
                       const float *w, long rows, int n, float eps, float p, uint32_t seed)
{
    for (long r = 0; r < rows; r++) {
        float row[MAX_ROW], d[MAX_ROW];
        widen_row(row, y + r * n, n);
        float inverse = inverse_rms(row, n, eps);
        for (int i = 0; i < n; i++) {
            d[i] = dout[r * n + i] * kept(seed, (uint32_t)(r * n + i), p);
            dw[i] += d[i] * row[i] * inverse;
            d[i] *= w[i];
        }
        norm_slope(d, row, inverse, n);
        narrow_row(dy + r * n, d, n);
    }
}

/* gelu in the tanh form, written as x * sigmoid(1.5957691 x + 0.0713548 x^3). */
static inline float gate(float x)
{
    return 1 / (1 + fast_exp(-x * (1.5957691216f + 0.0713548163f * x * x)));
}

void gelu_forward(uint16_t *out, const uint16_t *a, const uint16_t *b, long count)
{
    for (long i = 0; i < count; i++) {
        float x = widen(a[i]);
        out[i] = narrow(x * gate(x) * widen(b[i]));
    }
}

void gelu_backward(uint16_t *da, uint16_t *db, const uint16_t *d, const uint16_t *a,
                   const uint16_t *b, long count)
{
    for (long i = 0; i < count; i++) {
        float x = widen(a[i]), s = gate(x), g = widen(d[i]);
        float slope = s + x * s * (1 - s) * (1.5957691216f + 0.2140644489f * x * x);
        da[i] = narrow(g * widen(b[i]) * slope);
        db[i] = narrow(g * x * s);
    }
}

static inline void rotate(float *x, const float *cosine, const float *sine, int half,
                          float sign)
{
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = a * cosine[i] - sign * b * sine[i];
        x[i + half] = b * cosine[i] + sign * a * sine[i];
    }
}

/*
 * Heads: x [batch, t, heads, n] -> norm, weights, rotation -> y [batch, heads, t, n].
 * Values have neither weights nor rotation (w and cosine are NULL).
 */
void heads_forward(uint16_t *y, const uint16_t *x, const float *w, const float *cosine,
                   const float *sine, int batch, int t, int heads, int n, float eps)
{
    for (long at = 0; at < (long)batch * t; at++)
        for (int h = 0; h < heads; h++) {
            float row[MAX_ROW];
            widen_row(row, x + (at * heads + h) * n, n);
            float inverse = inverse_rms(row, n, eps);
            for (int i = 0; i < n; i++)
                row[i] *= w ? inverse * w[i] : inverse;
            if (cosine)
                rotate(row, cosine + at * (n / 2), sine + at * (n / 2), n / 2, 1);
            narrow_row(y + ((at / t * heads + h) * t + at % t) * n, row, n);
        }
}

void heads_backward(uint16_t *dx, float *dw, const uint16_t *dy, const uint16_t *x,
                    const float *w, const float *cosine, const float *sine, int batch, int t,
                    int heads, int n, float eps)
{
    for (long at = 0; at < (long)batch * t; at++)
        for (int h = 0; h < heads; h++) {
            float row[MAX_ROW], d[MAX_ROW];
            widen_row(row, x + (at * heads + h) * n, n);
            widen_row(d, dy + ((at / t * heads + h) * t + at % t) * n, n);
            float inverse = inverse_rms(row, n, eps);
            if (cosine)
                rotate(d, cosine + at * (n / 2), sine + at * (n / 2), n / 2, -1);
            for (int i = 0; w && i < n; i++) {
                dw[i] += d[i] * row[i] * inverse;
                d[i] *= w[i];
            }
            norm_slope(d, row, inverse, n);
            narrow_row(dx + (at * heads + h) * n, d, n);
        }
}

/*
 * Softmax of scores [batch, heads, t, all], in place.  The rows are the last t of all places;
 * a place sees itself and what is before it, at a distance of less than window.
 */
void softmax_forward(uint16_t *score, const int64_t *position, int batch, int heads, int t,
                     int all, int64_t window)
{
    for (long r = 0; r < (long)batch * heads * t; r++) {
        const int64_t *seen = position + r / ((long)heads * t) * all;
        int end = all - t + (int)(r % t) + 1, from = 0;
        uint16_t *row = score + r * all;
        while (seen[end - 1] - seen[from] >= window)
            from++;
        float largest = -INFINITY, sum = 0, x[end - from];
        for (int i = from; i < end; i++) {
            x[i - from] = widen(row[i]);
            largest = x[i - from] > largest ? x[i - from] : largest;
        }
        for (int i = 0; i < end - from; i++) {
            x[i] = fast_exp(x[i] - largest);
            sum += x[i];
        }
        memset(row, 0, 2 * (size_t)all);
        for (int i = from; i < end; i++)
            row[i] = narrow(x[i - from] / sum);
    }
}

/* d: gradient of the weights, replaced by the gradient of the scores. */
void softmax_backward(uint16_t *d, const uint16_t *weight, long rows, int n)
{
    for (long r = 0; r < rows; r++) {
        float dot = 0;
        for (int i = 0; i < n; i++)
            dot += widen(d[r * n + i]) * widen(weight[r * n + i]);
        for (int i = 0; i < n; i++)
            d[r * n + i] = narrow(widen(weight[r * n + i]) * (widen(d[r * n + i]) - dot));
    }
}

/*
 * Cross entropy of soft-capped logits [rows, n]: loss gets weight * -log p(target) of each row,
 * logits get the gradient of the sum of all.
 */
void cross_entropy(float *loss, uint16_t *logits, const int64_t *target, const float *weight,
                   long rows, int n, float cap)
{
    for (long r = 0; r < rows; r++) {
        uint16_t *row = logits + r * n;
        float y[n], e[n], sum = 0;
        for (int i = 0; i < n; i++) {
            float x = widen(row[i]);
            y[i] = 1 - 2 / (1 + fast_exp(2 / cap * x)); /* tanh(x / cap) */
            e[i] = fast_exp(cap * y[i] - cap);
            sum += e[i];
        }
        loss[r] = weight[r] * (logf(sum) + cap - cap * y[target[r]]);
        for (int i = 0; i < n; i++) {
            float p = e[i] / sum - (i == target[r] ? 1.0f : 0.0f);
            row[i] = narrow(weight[r] * p * (1 - y[i] * y[i]));
        }
    }
}

/* AdamW. scale1 and scale2 undo the bias of the first steps. */
void adam(float *w, float *m, float *v, const float *g, long count, float rate, float decay,
          float beta1, float beta2, float scale1, float scale2, float clip)
{
    for (long i = 0; i < count; i++) {
        float d = g[i] * clip;
        m[i] = beta1 * m[i] + (1 - beta1) * d;
        v[i] = beta2 * v[i] + (1 - beta2) * d * d;
        w[i] -= rate * (decay * w[i] + m[i] * scale1 / (sqrtf(v[i] * scale2) + 1e-9f));
    }
}
