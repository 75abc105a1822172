/* A sample has the last MW_RECENT tokens, so with ten samples per second up to 640 tokens get a
 * line in each of them.  Above that a line "lost" has the number of tokens without one. */
#include "config.h"

#include "engine/telemetry/lines.h"

#include <string.h>

#include "engine/telemetry/json.h"

#define SECOND_NS 1000000000u

static void write_sample(const struct mw_sample *s, const char *event, struct json *out)
{
    mw_sample_json(out, s, event);
    json_line(out);
}

static void write_lost(const struct mw_sample *s, uint64_t n, struct json *out)
{
    json_object(out, NULL);
    json_string(out, "event", "lost");
    json_u64(out, "t_ns", s->t_ns);
    json_u64(out, "n", n);
    json_end(out);
    json_line(out);
}

/* Write a line for each token that does not have one. */
static void write_tokens(struct mw_lines *l, const struct mw_sample *s, struct json *out)
{
    if (s->n_token > l->n_token + MW_RECENT) {
        write_lost(s, s->n_token - l->n_token - MW_RECENT, out);
        l->n_token = s->n_token - MW_RECENT;
    }
    for (; l->n_token < s->n_token; l->n_token++) {
        token_json(out, &s->recent[l->n_token % MW_RECENT], &s->trace[l->n_token % MW_RECENT]);
        json_line(out);
    }
}

static bool plan_changed(const struct mw_lines *l, const struct mw_sample *s)
{
    return memcmp(&l->run, &s->run, sizeof l->run) != 0 ||
           memcmp(l->plan, s->mem.plan, sizeof l->plan) != 0;
}

/* Write the plan of the sample as a line. */
static void write_plan(struct mw_lines *l, const struct mw_sample *s, const char *event,
                       struct json *out)
{
    write_sample(s, event, out);
    l->run = s->run;
    memcpy(l->plan, s->mem.plan, sizeof l->plan);
}

void mw_lines_start(struct mw_lines *l, const struct mw_sample *s)
{
    memset(l, 0, sizeof *l);
    l->n_token = s->n_token;
}

void mw_lines_add(struct mw_lines *l, const struct mw_sample *s, bool is_last, struct json *out)
{
    /* The start line contains the plan, so it waits for one. */
    if (!l->has_start && s->run.n_layer == 0 && !is_last)
        return;
    if (!l->has_start) {
        write_plan(l, s, "start", out);
        l->next_second_ns = s->t_ns;
        l->has_start = true;
        if (!is_last)
            return;
    }
    if (plan_changed(l, s))
        write_plan(l, s, "plan", out);
    write_tokens(l, s, out);
    if (!is_last && s->t_ns < l->next_second_ns)
        return;
    write_sample(s, "second", out);
    l->next_second_ns += SECOND_NS;
    if (l->next_second_ns <= s->t_ns) /* the machine was suspended */
        l->next_second_ns = s->t_ns + SECOND_NS;
}
