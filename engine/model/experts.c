/*
 * Mixtures of experts: instead of the dense branch, or beside it (Gemma 4 26B-A4B).  Beside it,
 * the dense branch may be one more expert, which all tokens use with a gate of its own.
 *
 * The router reads what the dense branch would read, and so do the experts, unless a matrix
 * makes their input narrower; another one widens the sum of their outputs then.  With a dense
 * branch beside it, the router reads the residual stream, normed without weights, times a vector
 * and 1/sqrt(n_embd).  Only the weights of the experts that it chooses are read.  It runs before
 * the dense branch, so that the reads have begun while that is computed.
 *
 * Each expert is multiplied with all columns that chose it at once, when its weights are in
 * memory.  Experts come in any order, so their outputs are kept until the experts of a group
 * are done, and then each column adds its own in ascending order.  The sum of a column
 * therefore does not depend on its neighbours, the groups, or what was in memory.
 */
#include "config.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/forward_internal.h"

static uint64_t slab_bytes(const struct tensor_info *t, uint32_t n_expert)
{
    return t != NULL ? t->bytes / n_expert : 0;
}

static void add_part(struct expert_layer *out, const struct tensor_info *t)
{
    uint64_t bytes = slab_bytes(t, out->n_expert), values;

    if (t == NULL)
        return;
    if (t->layout != LAYOUT_SPLIT) {
        out->part[out->n_part++] = (struct expert_part){ t->file, t->offset, bytes, t->pieces };
        return;
    }
    values = t->ne[1] * split_value_bytes(t->ne[0]);
    for (uint32_t i = 0; i < 2; i++) {
        const struct tensor_piece *at = t->pieces + i * (t->n_piece / 2);

        out->part[out->n_part++] =
            (struct expert_part){ at->file, at->offset, i == 0 ? values : bytes - values,
                                  t->n_piece > 2 ? at : NULL };
    }
}

void experts_layer(const struct experts_desc *x, struct expert_layer *out)
{
    *out = (struct expert_layer){ .n_expert = x->n_expert, .n_used = x->n_used };
    if (x->n_expert == 0)
        return;
    add_part(out, x->gate_up);
    add_part(out, x->gate);
    add_part(out, x->up);
    add_part(out, x->down);
}

uint64_t experts_token_bytes(const struct model_desc *d)
{
    uint64_t bytes = 0;

    for (uint32_t l = 0; l < d->n_layer; l++) {
        struct expert_layer x;

        experts_layer(&d->layers[l].experts, &x);
        for (uint32_t i = 0; i < x.n_part; i++)
            bytes += x.part[i].bytes * d->layers[l].experts.n_used;
    }
    return bytes;
}

/* Describe the experts of all layers; the caller frees the result. */
static struct expert_layer *all_layers(const struct model_desc *d)
{
    struct expert_layer *layers = malloc(d->n_layer * sizeof *layers);

    for (uint32_t l = 0; layers != NULL && l < d->n_layer; l++)
        experts_layer(&d->layers[l].experts, &layers[l]);
    return layers;
}

int experts_open(struct expert_cache **out, const struct model_desc *d, struct stream *s,
                 uint64_t bytes, struct telemetry *t, struct err *e)
{
    struct expert_layer *layers;
    int rc;

    *out = NULL;
    if (d->hp->n_expert == 0)
        return 0;
    layers = all_layers(d);
    if (layers == NULL)
        return err_memory(e, "the experts of %u layers", d->n_layer);
    rc = expert_cache_open(out, s, layers, d->n_layer, bytes, t, e);
    free(layers);
    return rc;
}

void experts_sizes(const struct model_desc *d, struct expert_sizes *out)
{
    struct expert_layer *layers = all_layers(d);

    *out = (struct expert_sizes){ 0 };
    if (layers != NULL)
        expert_sizes_of(layers, d->n_layer, out);
    free(layers);
}

void forward_mul_resident(const struct kernels *kern, const float *w, size_t n_row,
                          const float *x, size_t n_k, float *y)
{
    kern->mul(&(struct matmul){ .type = TYPE_F32,
                                .form = ACT_F32,
                                .n_row = n_row,
                                .n_k = n_k,
                                .n_col = 1,
                                .w = w,
                                .x = x,
                                .x_stride = n_k * sizeof *x,
                                .y = y,
                                .ldy = n_row });
}

struct route {
    struct forward *f;
    const struct layer_desc *layer;
    float *sum; /* [chunk][n_embd] of the experts' outputs */
};

/* z: the input of the router of one column. */
static void router_input(const struct forward *f, const struct experts_desc *x, uint32_t c,
                         float *z)
{
    const struct model_desc *d = f->p.desc;
    size_t at = (size_t)c * d->n_embd;

    if (!x->is_beside) {
        memcpy(z, f->h + at, d->n_embd * sizeof *z);
        return;
    }
    f->p.kernels->rms_norm(f->x + at, NULL, d->n_embd, d->rms_eps, z);
    for (uint32_t i = 0; i < d->n_embd; i++)
        z[i] = z[i] * x->router_scale.w[i] * (1 / sqrtf((float)d->n_embd));
}

/* Turn the scores p[n_expert] into the weights of the n_used greatest; 0 for the others. */
static void choose(const struct experts_desc *x, float *p)
{
    float top = -INFINITY, all = 0, chosen = 0;

    for (uint32_t i = 0; i < x->n_expert; i++)
        top = fmaxf(top, p[i]);
    for (uint32_t i = 0; i < x->n_expert; i++) {
        p[i] = expf(p[i] - top);
        all += p[i];
    }
    for (uint32_t n_left = x->n_used; n_left > 0; n_left--) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < x->n_expert; i++)
            if (p[i] > p[best])
                best = i;
        chosen += p[best];
        p[best] = -p[best]; /* the sign marks it as chosen */
    }
    for (uint32_t i = 0; i < x->n_expert; i++) {
        p[i] = p[i] < 0 ? -p[i] / (x->keeps_weights ? all : chosen) : 0;
        if (x->expert_scale.w != NULL)
            p[i] *= x->expert_scale.w[i];
    }
}

/* Leave the best groups of experts in the choice: others get -INFINITY. */
static void mask_groups(const struct experts_desc *x, float *choice)
{
    uint32_t n = x->n_expert / x->n_group, n_left = x->n_group_used;
    float score[MAX_EXPERT_GROUP];

    for (uint32_t g = 0; g < x->n_group; g++) {
        float first = -INFINITY, second = -INFINITY;

        for (uint32_t i = g * n; i < (g + 1) * n; i++) {
            if (choice[i] > first) {
                second = first;
                first = choice[i];
            } else if (choice[i] > second) {
                second = choice[i];
            }
        }
        score[g] = x->groups_by_max || n == 1 ? first : first + second;
    }
    for (uint32_t g; n_left > 0; n_left--) {
        g = 0;
        for (uint32_t i = 1; i < x->n_group; i++)
            if (score[g] == INFINITY || (score[i] > score[g] && score[i] != INFINITY))
                g = i;
        score[g] = INFINITY; /* marks it as chosen */
    }
    for (uint32_t i = 0; i < x->n_group * n; i++)
        if (score[i / n] != INFINITY)
            choice[i] = -INFINITY;
}

/* Turn the products p[n_expert] into scores, all of which are above 0 or equal to it. */
static void score_experts(const struct experts_desc *x, float *p)
{
    float top = -INFINITY, all = 0;

    for (uint32_t i = 0; i < x->n_expert; i++)
        top = fmaxf(top, p[i]);
    for (uint32_t i = 0; i < x->n_expert; i++) {
        p[i] = x->score == SCORE_SIGMOID         ? 1 / (1 + expf(-p[i]))
               : x->score == SCORE_SQRT_SOFTPLUS ? sqrtf(softplus(p[i]))
                                                 : expf(p[i] - top);
        all += p[i];
    }
    for (uint32_t i = 0; x->score == SCORE_SOFTMAX && i < x->n_expert; i++)
        p[i] /= all;
}

/* Mark with INFINITY the experts that the table has for a token. */
static void choose_by_id(const struct experts_desc *x, uint32_t id, float *choice)
{
    for (uint32_t i = 0; i < x->n_expert; i++)
        choice[i] = 0;
    for (uint32_t i = 0; i < x->n_used; i++)
        choice[(uint32_t)x->ids.w[(size_t)id * x->n_used + i]] = INFINITY;
}

/* Mark the n_used experts with the best scores plus biases, in the best groups. */
static void choose_by_score(const struct experts_desc *x, const float *p, float *choice)
{
    for (uint32_t i = 0; i < x->n_expert; i++)
        choice[i] = p[i] + (x->choice_bias.w != NULL ? x->choice_bias.w[i] : 0);
    if (x->n_group > 1)
        mask_groups(x, choice);
    for (uint32_t n_left = x->n_used; n_left > 0; n_left--) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < x->n_expert; i++)
            if (choice[best] == INFINITY || (choice[i] > choice[best] && choice[i] != INFINITY))
                best = i;
        choice[best] = INFINITY; /* marks it as chosen */
    }
}

/*
 * The weights of the experts in p, from their products: those of the chosen ones are their
 * scores, divided by the sum of those unless keeps_weights, times a factor.  choice: scratch for
 * n_expert values.  id: the token.
 */
static void choose_routed(const struct experts_desc *x, float *p, float *choice, uint32_t id)
{
    float sum = 0;

    score_experts(x, p);
    if (x->ids.w != NULL)
        choose_by_id(x, id, choice);
    else
        choose_by_score(x, p, choice);
    for (uint32_t i = 0; i < x->n_expert; i++) {
        p[i] = choice[i] == INFINITY ? p[i] : 0;
        sum += p[i];
    }
    sum += x->guard;
    /* Scores that are all 0 leave nothing to divide. */
    for (uint32_t i = 0; i < x->n_expert; i++)
        p[i] *= x->keeps_weights || !(sum > 0) ? x->factor : x->factor / sum;
}

/* Set the moe_weight of one column, and moe_h, the input of the experts. */
static void route_col(void *ctx, uint32_t c)
{
    const struct route *r = ctx;
    struct forward *f = r->f;
    const struct experts_desc *x = &r->layer->experts;
    const struct model_desc *d = f->p.desc;
    const struct kernels *kern = f->p.kernels;
    float *z = f->moe_h + (size_t)c * d->n_embd;
    float *p = f->moe_weight + (size_t)c * x->n_expert;

    router_input(f, x, c, z);
    forward_mul_resident(kern, x->router.w, x->n_expert, z, d->n_embd, p);
    if (x->router_bias.w != NULL)
        kern->add(p, x->router_bias.w, x->n_expert);
    if (x->is_routed)
        choose_routed(x, p, f->moe_choose + (size_t)c * x->n_expert, f->ids[c]);
    else
        choose(x, p);
    if (x->is_beside)
        kern->rms_norm(f->x + (size_t)c * d->n_embd, x->pre_norm.w, d->n_embd, d->rms_eps, z);
}

/* --- the chosen experts --- */

/* The columns that chose one expert, in moe_cols. */
struct chosen {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t expert;
    float *out; /* [columns][n_in] */
};

static uint32_t list_cols(struct forward *f, const struct experts_desc *x, uint32_t expert)
{
    uint32_t n = 0;

    for (uint32_t c = 0; c < f->n_col; c++)
        if (f->moe_weight[(size_t)c * x->n_expert + expert] != 0)
            f->moe_cols[n++] = c;
    return n;
}

static void gather_col(void *ctx, uint32_t i)
{
    const struct chosen *j = ctx;
    struct forward *f = j->f;
    size_t n = j->layer->experts.n_in;

    memcpy(f->h + i * n, f->moe_in + f->moe_cols[i] * n, n * sizeof *f->h);
}

/* gate, up: n values each, in turn at first; u is scratch. */
static void part_rows(float *gate, float *u, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        u[i] = gate[2 * i + 1];
        gate[i] = gate[2 * i];
    }
    memcpy(gate + n, u, n * sizeof *u);
}

/*
 * gate = (clamp(up) + 1) * g * sigmoid(1.702 * g), where g is gate without what exceeds the
 * limit: gpt-oss.  The factor goes through silu as a scale.
 */
static void clamped_mul(const struct kernels *kern, float *gate, float *up, size_t n,
                        float limit)
{
    for (size_t i = 0; i < n; i++) {
        float g = gate[i] < limit ? gate[i] : limit;
        float u = up[i] < limit ? up[i] : limit;

        gate[i] = 1.702f * g;
        up[i] = ((u > -limit ? u : -limit) + 1) / 1.702f;
    }
    kern->silu_mul(gate, up, n);
}

static void act_col(void *ctx, uint32_t i)
{
    const struct chosen *j = ctx;
    const struct experts_desc *x = &j->layer->experts;
    const struct kernels *kern = j->f->p.kernels;
    size_t n = x->n_ff, first = (size_t)j->expert * n;
    float *gate = j->f->gate + i * 2 * n, *up = gate + n;

    if (x->gate_up_bias.w != NULL)
        kern->add(gate, x->gate_up_bias.w + 2 * first, 2 * n);
    if (x->rows_alternate)
        part_rows(gate, j->f->up + i * n, n);
    if (x->gate_bias.w != NULL)
        kern->add(gate, x->gate_bias.w + first, n);
    if (x->up_bias.w != NULL)
        kern->add(up, x->up_bias.w + first, n);
    if (x->clamp.up > 0)
        clamp_products(gate, up, n, x->clamp);
    if (x->limit > 0)
        clamped_mul(kern, gate, up, n, x->limit);
    else if (j->f->p.desc->act == ACT_KIND_GELU)
        kern->gelu_mul(gate, up, n);
    else if (j->f->p.desc->act == ACT_KIND_RELU2)
        relu2(gate, n);
    else
        kern->silu_mul(gate, up, n);
}

static void down_bias_col(void *ctx, uint32_t i)
{
    const struct chosen *j = ctx;
    size_t n = j->layer->experts.n_in;

    j->f->p.kernels->add(j->out + i * n, j->layer->experts.down_bias.w + j->expert * n, n);
}

/* Multiply with the next of an expert's matrices.  Returns the parts after its own. */
static const unsigned char *const *mul_part(struct forward *f, const struct tensor_info *t,
                                            const struct vec *scales, uint32_t expert,
                                            const unsigned char *const *part, size_t n_row,
                                            const float *x, size_t ldx, uint32_t n_col, float *y,
                                            size_t ldy)
{
    forward_mul_expert(f, &(struct expert_mat){ t, scales, expert, part }, n_row, x, ldx, n_col,
                       y, ldy);
    return part + (t->layout == LAYOUT_SPLIT ? 2 : 1);
}

/* out[i] = D.(act(G.h) * U.h) for the i-th of the columns that chose this expert. */
static void run_expert(struct forward *f, const struct layer_desc *layer,
                       const struct expert_weights *w, float *out)
{
    const struct experts_desc *x = &layer->experts;
    uint32_t n_in = x->n_in, n_ff = x->n_ff;
    uint32_t n_col = list_cols(f, x, w->expert);
    struct chosen j = { f, layer, w->expert, out };
    const unsigned char *const *part = w->part;

    forward_each(f, n_col, gather_col, &j);
    if (x->gate_up != NULL) {
        part = mul_part(f, x->gate_up, &x->gate_up_scales, w->expert, part, 2 * n_ff, f->h,
                        n_in, n_col, f->gate, 2 * n_ff);
    } else if (x->gate == NULL) { /* there is one product, in the place of the gate's */
        part = mul_part(f, x->up, &x->up_scales, w->expert, part, n_ff, f->h, n_in, n_col,
                        f->gate, 2 * n_ff);
    } else {
        part = mul_part(f, x->gate, &x->gate_scales, w->expert, part, n_ff, f->h, n_in, n_col,
                        f->gate, 2 * n_ff);
        part = mul_part(f, x->up, &x->up_scales, w->expert, part, n_ff, f->h, n_in, n_col,
                        f->gate + n_ff, 2 * n_ff);
    }
    forward_each(f, n_col, act_col, &j);
    mul_part(f, x->down, &x->down_scales, w->expert, part, n_in, f->gate, 2 * n_ff, n_col, out,
             n_in);
    if (x->down_bias.w != NULL)
        forward_each(f, n_col, down_bias_col, &j);
}

/* Experts moe_list[first] … moe_list[end - 1], whose outputs are kept together in moe_out. */
struct group {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t first, end;
};

/* Take experts into the group while there is room for their outputs, and give each output a
 * place.  At least one expert fits: a column needs one place. */
static void fill_group(struct group *g, uint32_t n_list)
{
    struct forward *f = g->f;
    uint32_t n_expert = g->layer->experts.n_expert, n_row = 0;

    for (g->end = g->first; g->end < n_list; g->end++) {
        uint32_t expert = f->moe_list[g->end];
        uint32_t n_col = list_cols(f, &g->layer->experts, expert);

        if (n_row + n_col > f->moe_out_rows)
            break;
        for (uint32_t i = 0; i < n_col; i++)
            f->moe_row[(size_t)f->moe_cols[i] * n_expert + expert] = n_row + i;
        n_row += n_col;
    }
    assert(g->end > g->first);
}

static void add_outputs_col(void *ctx, uint32_t c)
{
    const struct group *g = ctx;
    const struct forward *f = g->f;
    const struct kernels *kern = f->p.kernels;
    size_t n_in = g->layer->experts.n_in, first = (size_t)c * g->layer->experts.n_expert;

    for (uint32_t i = g->first; i < g->end; i++) {
        float weight = f->moe_weight[first + f->moe_list[i]];
        float *out;

        if (weight == 0)
            continue;
        out = f->moe_out + f->moe_row[first + f->moe_list[i]] * n_in;
        kern->scale(out, weight, n_in);
        kern->add(f->moe_sum + c * n_in, out, n_in);
    }
}

static int run_group(struct group *g, struct err *e)
{
    struct forward *f = g->f;
    uint32_t n_expert = g->layer->experts.n_expert;

    for (uint32_t i = g->first; i < g->end; i++) {
        struct expert_weights w;
        uint32_t n_col;

        if (cancel_check(f->p.cancel, e) != 0 ||
            expert_cache_next(f->p.experts, g->end, &w, &f->stall_ns, e) != 0)
            return -1;
        n_col = list_cols(f, &g->layer->experts, w.expert);
        assert(n_col > 0);
        run_expert(f, g->layer, &w,
                   f->moe_out +
                       (size_t)f->moe_row[(size_t)f->moe_cols[0] * n_expert + w.expert] *
                           g->layer->experts.n_in);
        expert_cache_give(f->p.experts);
    }
    forward_each_col(f, add_outputs_col, g);
    return 0;
}

/* y = sigmoid(r.h) * y + sum of experts, with the expert that all tokens share in y.  Without r
 * it has no factor. */
static void add_shared(const struct forward *f, const struct experts_desc *x, uint32_t c,
                       const float *sum)
{
    const struct kernels *kern = f->p.kernels;
    size_t n = f->p.desc->n_embd, at = c * n;
    float gate;

    if (x->shared_router.w != NULL) {
        forward_mul_resident(kern, x->shared_router.w, 1, f->moe_h + at, n, &gate);
        kern->scale(f->y + at, 1 / (1 + expf(-gate)), n);
    }
    kern->add(f->y + at, sum, n);
}

/* y = norm_1(dense branch) + norm_2(sum of experts), or the sum alone. */
static void join_col(void *ctx, uint32_t c)
{
    const struct route *r = ctx;
    struct forward *f = r->f;
    const struct experts_desc *x = &r->layer->experts;
    const struct model_desc *d = f->p.desc;
    float *y = f->y + (size_t)c * d->n_embd, *sum = r->sum + (size_t)c * d->n_embd;

    if (x->is_shared) {
        add_shared(f, x, c, sum);
        return;
    }
    if (!x->is_beside) {
        memcpy(y, sum, d->n_embd * sizeof *y);
        return;
    }
    f->p.kernels->rms_norm(y, x->post_norm_dense.w, d->n_embd, d->rms_eps, y);
    f->p.kernels->rms_norm(sum, x->post_norm_experts.w, d->n_embd, d->rms_eps, sum);
    f->p.kernels->add(y, sum, d->n_embd);
}

/* List in moe_list the experts that any column chose, and in moe_choice by how many.  Returns
 * their number. */
static uint32_t list_experts(struct forward *f, const struct experts_desc *x)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n_expert; i++) {
        uint32_t n_col = list_cols(f, x, i);

        if (n_col == 0)
            continue;
        f->moe_list[n] = i;
        f->moe_choice[n++] = n_col;
    }
    return n;
}

int forward_route(struct forward *f, const struct layer_desc *layer, uint32_t l, struct err *e)
{
    struct route r = { .f = f, .layer = layer };
    uint32_t n_in = layer->experts.n_in;

    forward_each_col(f, route_col, &r);
    f->n_moe_list = list_experts(f, &layer->experts);
    if (f->n_col == 1)
        telemetry_trace(f->p.telemetry, f->moe_list, f->n_moe_list);
    expert_cache_begin(f->p.experts, l, f->n_col, f->moe_list, f->moe_choice, f->n_moe_list);
    if (layer->expert_in.tensor == NULL)
        return 0;
    return forward_mul(f, &layer->expert_in, f->moe_h, f->p.desc->n_embd, f->moe_in, n_in, e);
}

int forward_experts(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct group g = { .f = f, .layer = layer };
    struct route r = { f, layer, f->moe_sum };
    uint32_t n_in = layer->experts.n_in, n_embd = f->p.desc->n_embd;

    memset(f->moe_sum, 0, (size_t)f->n_col * n_in * sizeof *f->moe_sum);
    for (; g.first < f->n_moe_list; g.first = g.end) {
        fill_group(&g, f->n_moe_list);
        if (run_group(&g, e) != 0)
            return -1;
    }
    if (layer->expert_out.tensor != NULL) {
        r.sum = f->h; /* which no expert needs now */
        if (forward_mul(f, &layer->expert_out, f->moe_sum, n_in, r.sum, n_embd, e) != 0)
            return -1;
    }
    forward_each_col(f, join_col, &r);
    return 0;
}
