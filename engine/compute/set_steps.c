/* Functions of values and vectors, and the table of the set. */
#include "config.h"

#include "engine/compute/kernel_set.h"
#include "engine/compute/kv_types.h"
#include "engine/compute/set_curves.h"

/* x[i] = expression of vx and vy, for n values */
#define EACH_VECTOR(x, y, n, expression)                                                       \
    do {                                                                                       \
        size_t i = 0;                                                                          \
        for (; i + VN <= (n); i += VN) {                                                       \
            vf vx = vf_load((x) + i), vy = vf_load((y) + i);                                   \
            (void)vy;                                                                          \
            vf_store((x) + i, expression);                                                     \
        }                                                                                      \
        if (i < (n)) {                                                                         \
            vf vx = vf_load_part((x) + i, (n)-i), vy = vf_load_part((y) + i, (n)-i);           \
            (void)vy;                                                                          \
            vf_store_part((x) + i, expression, (n)-i);                                         \
        }                                                                                      \
    } while (0)

static void set_gelu_mul(float *gate, const float *up, size_t n)
{
    EACH_VECTOR(gate, up, n, vf_mul(vf_gelu(vx), vy));
}

static void set_silu_mul(float *gate, const float *up, size_t n)
{
    EACH_VECTOR(gate, up, n, vf_mul(vf_silu(vx), vy));
}

static void set_sigmoid_mul(float *x, const float *gate, size_t n)
{
    EACH_VECTOR(x, gate, n, vf_div(vx, vf_add(vf_all(1), vf_exp(vf_sub(vf_zero(), vy)))));
}

static void set_add(float *x, const float *y, size_t n)
{
    EACH_VECTOR(x, y, n, vf_add(vx, vy));
}

static void set_scale(float *x, float s, size_t n)
{
    EACH_VECTOR(x, x, n, vf_mul(vx, vf_all(s)));
}

static void set_softcap(float *x, float cap, size_t n)
{
    EACH_VECTOR(x, x, n, vf_mul(vf_all(cap), vf_tanh(vf_div(vx, vf_all(cap)))));
}

/* Two vectors of partial sums, which hide each other's latency. */
INLINE float sum_of_squares(const float *x, size_t n)
{
    vf even = vf_zero(), odd = vf_zero();
    size_t i = 0;

    for (; i + 2 * VN <= n; i += 2 * VN) {
        vf a = vf_load(x + i), b = vf_load(x + i + VN);

        even = vf_fma(a, a, even);
        odd = vf_fma(b, b, odd);
    }
    for (; i < n; i += VN) {
        vf a = vf_load_part(x + i, n - i < VN ? n - i : VN);

        even = vf_fma(a, a, even);
    }
    return vf_sum(vf_add(even, odd));
}

static void set_rms_norm(const float *x, const float *w, size_t n, float eps, float *out)
{
    float s = 1 / sqrtf(sum_of_squares(x, n) / (float)n + eps);
    size_t i = 0;

    for (; i + VN <= n; i += VN) {
        vf v = vf_mul(vf_load(x + i), vf_all(s));

        vf_store(out + i, w != NULL ? vf_mul(v, vf_load(w + i)) : v);
    }
    if (i < n) {
        vf v = vf_mul(vf_load_part(x + i, n - i), vf_all(s));

        vf_store_part(out + i, w != NULL ? vf_mul(v, vf_load_part(w + i, n - i)) : v, n - i);
    }
}

/* The CPU rounds to f16; kv_types.c stores the other types. */
static void set_kv_store(enum kv_type type, const float *src, size_t n, void *dst)
{
    uint8_t *p = dst;
    size_t i = 0;

    if (type != KV_F16) {
        kv_row_store(type, src, n, dst);
        return;
    }
    for (; i + VN <= n; i += VN)
        vf_store_f16(p + 2 * i, vf_load(src + i));
    if (i < n)
        kv_row_store(KV_F16, src + i, n - i, p + 2 * i);
}

/* ---- the set ---- */

static void set_act_pack(enum act_form form, const float *x, size_t n_k, void *dst)
{
    size_t bytes = act_bytes(ACT_F32, n_k);

    if (form == ACT_Q8) {
        set_pack_q8(x, n_k, dst);
        return;
    }
    memcpy(dst, x, n_k * sizeof *x);
    memset((char *)dst + n_k * sizeof *x, 0, bytes - n_k * sizeof *x);
}

static void set_mul(const struct matmul *m)
{
    if (m->form == ACT_F32)
        set_mul_float(m);
    else
        set_mul_q8(m);
}

extern const struct kernels SET_FUNCTION(kernels);
const struct kernels SET_FUNCTION(kernels) = {
    .name = SET_NAME,
#ifdef DOT_TAKES_255 /* as in set_mul_q8.c */
    .has_ways = true,
#endif
    .dequant = set_dequant,
    .act_pack = set_act_pack,
    .mul = set_mul,
    .mul_packed = set_mul_packed,
#if VN == 16
    .mul_interleaved = set_mul_interleaved,
#endif
    .unpack = set_unpack,
    .rms_norm = set_rms_norm,
    .gelu_mul = set_gelu_mul,
    .silu_mul = set_silu_mul,
    .sigmoid_mul = set_sigmoid_mul,
    .add = set_add,
    .scale = set_scale,
    .softcap = set_softcap,
    .rotate = set_rotate,
    .kv_store = set_kv_store,
    .attn = set_attn,
    .delta = set_delta,
};
