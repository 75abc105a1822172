/* Requests of other programs: what is accepted can be asked, and what is not is named. */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Messages are a JSON array that can be read, of objects with a role and a content. */
static void check_messages(const struct request *r)
{
    struct json_doc *doc = NULL;
    struct err e = ERR_INIT;

    if (json_parse(&doc, r->messages.buf, r->messages.used, &e) != 0 ||
        json_root(doc)->kind != JSON_IS_ARRAY)
        abort();
    for (const struct json_node *m = json_root(doc)->first; m != NULL; m = m->next)
        if (json_as_string(json_get(m, "role")) == NULL || json_get(m, "content") == NULL)
            abort();
    json_free(doc);
}

static void check(const struct request *r)
{
    const struct mw_sampling *s = &r->sampling;
    struct err e = ERR_INIT;

    if (!(s->temp >= 0 && s->temp <= 100) || s->top_k < 0 || !(s->top_p >= 0 && s->top_p <= 1) ||
        !(s->min_p >= 0 && s->min_p <= 1) ||
        !(s->repeat_penalty >= 0.0099f && s->repeat_penalty <= 100))
        abort();
    if (r->n_stop > REQUEST_STOPS || r->stop[r->n_stop] != NULL)
        abort();
    for (size_t i = 0; i < r->n_stop; i++)
        if (r->stop[i][0] == '\0' || strlen(r->stop[i]) > MW_STOP_BYTES)
            abort();
    if (!r->is_load && !r->has_messages && r->text == NULL && r->n_ids == 0)
        abort();
    if (!(fabsf(s->presence_penalty) <= 2) || !(fabsf(s->frequency_penalty) <= 2) ||
        r->n_logprob > MW_LOGPROBS || (r->must_call && r->grammar == NULL))
        abort();
    if (r->grammar != NULL && mw_grammar_check(r->grammar, r->grammar_len, &e) != 0)
        abort();
    if (r->has_messages)
        check_messages(r);
    if (r->model != NULL)
        request_names_model(r->model, "org/name:Q4_0");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const stop[] = { "<A>", "b", NULL };
    struct request_defaults defaults = {
        .system = size % 2 != 0 ? "be \"brief\"" : NULL,
        .stop = size % 3 != 0 ? stop : NULL,
        .sampling = { .temp = 1, .top_p = 1, .repeat_penalty = 1 },
        .calls = (enum call_form)(size % (CALLS_GEMMA + 1)),
    };
    struct request r;
    struct err e = ERR_INIT;

    if (size == 0)
        return 0;
    /* The first byte chooses the protocol: digits in the inputs that people wrote. */
    if (request_parse(&r, (enum request_form)(data[0] % N_FORM), &defaults,
                      (const char *)data + 1, size - 1, &e) == 0)
        check(&r);
    else if (e.code == ERR_NONE || e.what[0] == '\0')
        abort();
    request_free(&r);
    return 0;
}
