#include "config.h"

#include "engine/remote/chunk.h"

#include <math.h>
#include <string.h>

static uint32_t count(const struct json_node *n, bool *is_there)
{
    int64_t value;

    *is_there = json_as_int(n, &value) && value >= 0 && value <= UINT32_MAX;
    return *is_there ? (uint32_t)value : 0;
}

static double positive(const struct json_node *n)
{
    double value;

    return json_as_float(n, &value) && isfinite(value) && value > 0 ? value : NAN;
}

static void add_text(struct chunk *c, const struct json_node *n, bool is_thinking)
{
    if (n == NULL || n->kind != JSON_IS_STRING || n->len == 0)
        return;
    if (c->n_text == CHUNK_TEXTS) {
        c->has_more = true;
        return;
    }
    c->text[c->n_text].text = n->text;
    c->text[c->n_text].len = n->len;
    c->text[c->n_text++].is_thinking = is_thinking;
}

/* A content is a text, or a list of parts such as {"type":"text","text":TEXT} and
 * {"type":"thinking","thinking":[...]}. */
static void add_content(struct chunk *c, const struct json_node *n, bool is_thinking)
{
    if (n == NULL || n->kind != JSON_IS_ARRAY) {
        add_text(c, n, is_thinking);
        return;
    }
    for (const struct json_node *part = n->first; part != NULL; part = part->next) {
        const struct json_node *thinking = json_get(part, "thinking");

        if (thinking != NULL && thinking->kind == JSON_IS_ARRAY)
            for (const struct json_node *p = thinking->first; p != NULL; p = p->next)
                add_text(c, json_get(p, "text"), true);
        else
            add_text(c, thinking, true);
        add_text(c, json_get(part, "text"), is_thinking);
    }
}

static void read_choice(struct chunk *c, const struct json_node *choice)
{
    const struct json_node *delta = json_get(choice, "delta");
    const struct json_node *thinking;
    bool closes;

    if (delta == NULL)
        delta = json_get(choice, "message"); /* of a reply that is not a stream */
    thinking = json_get(delta, "reasoning_content");
    if (thinking == NULL)
        thinking = json_get(delta, "reasoning");
    add_content(c, thinking, true);
    add_content(c, json_get(delta, "content"), false);
    if (c->n_text > 0 && json_as_bool(json_get(delta, "closes_thinking"), &closes))
        c->text[c->n_text - 1].closes = closes;
    add_text(c, json_get(delta, "refusal"), false);
    c->finish = json_as_string(json_get(choice, "finish_reason"));
}

static void read_usage(struct chunk *c, const struct json_node *usage)
{
    const struct json_node *details = json_get(usage, "prompt_tokens_details");
    bool has_prompt, has_answer;

    c->n_prompt = count(json_get(usage, "prompt_tokens"), &has_prompt);
    c->n_decoded = count(json_get(usage, "completion_tokens"), &has_answer);
    c->n_cached = count(json_get(details, "cached_tokens"), &c->has_cached);
    c->has_usage = has_prompt && has_answer;
    c->has_cached = c->has_cached && c->has_usage && c->n_cached <= c->n_prompt;
}

/* The counts and rates that llama-server adds. */
static void read_timings(struct chunk *c, const struct json_node *timings)
{
    bool has_prompt, has_answer;
    uint32_t n_new, n_answer;

    c->prompt_tps = positive(json_get(timings, "prompt_per_second"));
    c->answer_tps = positive(json_get(timings, "predicted_per_second"));
    n_new = count(json_get(timings, "prompt_n"), &has_prompt);
    n_answer = count(json_get(timings, "predicted_n"), &has_answer);
    if (c->has_usage || !has_prompt || !has_answer)
        return;
    c->n_cached = count(json_get(timings, "cache_n"), &c->has_cached);
    if (c->n_cached > UINT32_MAX - n_new) {
        c->has_cached = false;
        return;
    }
    c->has_usage = true;
    c->n_prompt = n_new + c->n_cached;
    c->n_decoded = n_answer;
}

static void read_progress(struct chunk *c, const struct json_node *progress)
{
    bool has_done, has_all;

    c->n_all = count(json_get(progress, "total"), &has_all);
    c->n_done = count(json_get(progress, "processed"), &has_done);
    c->has_progress = has_done && has_all && c->n_done <= c->n_all;
}

static const char *error_of(const struct json_node *root)
{
    const struct json_node *error = json_get(root, "error");
    const char *text = json_as_string(error);

    if (error != NULL && text == NULL)
        text = json_as_string(json_get(error, "message"));
    if (error != NULL && text == NULL)
        text = "it does not say which";
    return text;
}

int chunk_read(struct chunk *out, const char *json, size_t n, struct err *e)
{
    const struct json_node *root, *choices;
    struct err why = ERR_INIT;

    *out = (struct chunk){ .prompt_tps = NAN, .answer_tps = NAN };
    if (json_parse_halves(&out->doc, json, n, &why) != 0)
        return why.code == ERR_MEMORY
                   ? err_memory(e, "a piece of the answer")
                   : err_set(e, ERR_FORMAT, "a piece of the answer is not JSON: %.200s",
                             why.what);
    root = json_root(out->doc);
    if (root == NULL || root->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_FORMAT, "a piece of the answer is not a JSON object");
    out->error = error_of(root);
    choices = json_get(root, "choices");
    if (choices != NULL && choices->kind == JSON_IS_ARRAY)
        read_choice(out, choices->first);
    if (out->has_more)
        return err_set(e, ERR_FORMAT, "a piece of the answer has more than %d texts",
                       CHUNK_TEXTS);
    read_usage(out, json_get(root, "usage"));
    read_timings(out, json_get(root, "timings"));
    read_progress(out, json_get(root, "prompt_progress"));
    return 0;
}

void chunk_free(struct chunk *c)
{
    json_free(c->doc);
    c->doc = NULL;
}
