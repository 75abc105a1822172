#include "config.h"

#include "ui/pick/wish.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/options/kept.h"

static const struct {
    enum option_id id;
    const char *word;
} fields[] = { { OPT_MEMORY, "budget" }, { OPT_CTX, "context" }, { OPT_KV, "kv" } };
#define N_FIELD ((int)(sizeof fields / sizeof fields[0]))

#define USUAL_CTX 4096

void wish_begin(struct pick_wish *w, const struct options *o, const char *kept_file)
{
    struct mw_machine machine;

    mw_machine_read(&machine);
    *w = (struct pick_wish){ .o = *o,
                             .kept_file = kept_file,
                             .most_bytes = machine.budget_bytes };
}

/* The name that a chat keeps settings under, or NULL. */
static const char *lasting_name(const struct mw_found *f)
{
    return f->manifest != NULL || f->store == MW_STORE_HUB ? f->name : NULL;
}

void wish_of(const struct pick_wish *w, const struct mw_found *f, struct options *out)
{
    const struct kept_model m = { lasting_name(f), f->path };
    bool fixed[N_OPTION], taken[N_OPTION];
    char text[KEPT_BYTES], why[320];

    *out = w->o;
    memcpy(fixed, w->o.given, sizeof fixed);
    if (w->kept_file != NULL)
        kept_apply(out, kept_read(w->kept_file, &m, text), fixed, taken);
    if (out->chat.engine.memory_bytes > 0)
        mw_budget_lower(&out->chat.engine.memory_bytes, why, sizeof why);
}

void wish_next(struct pick_wish *w)
{
    w->field = (w->field + 1) % N_FIELD;
}

/* ---- values ---- */

/* Budgets are 1, 1.5, 2, 3, 4, 6, ... times 64 MiB. */
static uint64_t budget_step(int i)
{
    return ((i % 2 == 0 ? (uint64_t)2 : (uint64_t)3) << i / 2) * 32 * MIB;
}

static void step_budget(const struct pick_wish *w, uint64_t now, int step, char *buf, size_t n)
{
    uint64_t then = 0; /* auto */
    int i = 0;

    while (budget_step(i) <= now)
        i++;
    if (step > 0 && (w->most_bytes == 0 || budget_step(i) <= w->most_bytes))
        then = budget_step(i);
    else if (step > 0)
        then = now;
    else if (i > 0 && budget_step(i - 1) < now)
        then = budget_step(i - 1);
    else if (i > 1)
        then = budget_step(i - 2);
    if (then == 0)
        snprintf(buf, n, "auto");
    else
        snprintf(buf, n, "%lluM", (unsigned long long)(then / MIB));
}

static void step_ctx(uint32_t now, int step, char *buf, size_t n)
{
    uint32_t then = 512;

    now = now == 0 ? USUAL_CTX : now;
    while (then < now)
        then *= 2;
    if (step < 0)
        then /= 2;
    else if (then == now)
        then *= 2;
    snprintf(buf, n, "%u", then < 512 ? 512 : then > 1 << 20 ? 1 << 20 : then);
}

static void step_kv(const struct mw_options *o, int step, char *buf, size_t n)
{
    static const enum mw_kv types[] = { MW_KV_F32, MW_KV_F16, MW_KV_Q8_0, MW_KV_Q4_0 };
    const int n_type = (int)(sizeof types / sizeof types[0]);
    int i = 0;

    while (i < n_type - 1 && types[i] != o->kv_k)
        i++;
    i += step;
    snprintf(buf, n, "%s", mw_kv_name(types[i < 0 ? 0 : i < n_type ? i : n_type - 1]));
}

bool wish_step(struct pick_wish *w, const struct mw_found *f, int step)
{
    enum option_id id = fields[w->field].id;
    struct err ignored = ERR_INIT;
    char text[32], old[32], new[32];
    struct options now;

    wish_of(w, f, &now);
    if (id == OPT_MEMORY)
        step_budget(w, now.chat.engine.memory_bytes, step, text, sizeof text);
    else if (id == OPT_CTX)
        step_ctx(now.chat.engine.n_ctx, step, text, sizeof text);
    else
        step_kv(&now.chat.engine, step, text, sizeof text);
    options_print(&now, id, old, sizeof old);
    if (id == OPT_KV) /* one type for both */
        w->o.given[OPT_KV_K] = w->o.given[OPT_KV_V] = false;
    if (options_set(&w->o, id, text, &ignored) != 0)
        return false;
    w->chosen[id] = true;
    return strcmp(old, options_print(&w->o, id, new, sizeof new)) != 0;
}

/* ---- drawing ---- */

static void field_text(const struct options *o, int field, char *buf, size_t n)
{
    char value[32];

    options_say(o, fields[field].id, value, sizeof value);
    if (fields[field].id == OPT_CTX)
        numbers_count(value, sizeof value,
                      o->chat.engine.n_ctx > 0 ? o->chat.engine.n_ctx : USUAL_CTX);
    snprintf(buf, n, "%s %s", fields[field].word, value);
}

void wish_draw(const struct pick_wish *w, const struct mw_found *f, const struct canvas *c, int y,
               int x)
{
    int at = c->width - 1;
    struct options o;
    char text[64];

    wish_of(w, f, &o);
    for (int i = N_FIELD; i-- > 0;) {
        bool is_focus = i == w->field;
        int width;

        field_text(&o, i, text, sizeof text);
        width = (int)strlen(text) + 4;
        /* The field that keys change is always there. */
        if (!is_focus && at - width < x + (i > w->field ? 24 : 0))
            continue;
        if (at - width < x)
            return;
        at -= width;
        canvas_text(c, y, at + 2, style_of(is_focus ? ROLE_ACCENT : ROLE_DIM), text);
        if (is_focus) {
            canvas_text(c, y, at, style_of(ROLE_ACCENT), "<");
            canvas_text(c, y, at + width - 1, style_of(ROLE_ACCENT), ">");
        }
    }
}
