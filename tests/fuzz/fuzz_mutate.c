/*
 * Structured mutations of valid models.
 *
 * The input chooses a small model, GGUF or snapshot, and changes that keep its outer form:
 * values, types, names, shapes, the order and number of its parts.  Such files get past the
 * readers to the code that computes with them; files with mutated bytes hardly ever do.  The file
 * is opened, described, planned and, if all accept it, evaluated twice, with chunks of one and of
 * two tokens.  Both must give equal bits, or equal refusals with a text.
 */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/machine/program.h"
#include "engine/memwall.h"
#include "tests/fuzz/fuzz_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_EVAL 3

/* ---- what the linker calls instead ---- */

void __real_mw_machine_read(struct mw_machine *out);
void __wrap_mw_machine_read(struct mw_machine *out);
uint64_t __real_program_file_bytes(void);
uint64_t __wrap_program_file_bytes(void);
int __wrap_strcmp(const char *a, const char *b);

/* Reading /proc for each input would take a fifth of the time. */
void __wrap_mw_machine_read(struct mw_machine *out)
{
    static struct mw_machine machine;
    static bool is_read;

    if (!is_read)
        __real_mw_machine_read(&machine);
    is_read = true;
    *out = machine;
}

uint64_t __wrap_program_file_bytes(void)
{
    static uint64_t bytes;

    if (bytes == 0)
        bytes = __real_program_file_bytes();
    return bytes;
}

/* libFuzzer notes what strcmp() compares, to put it into inputs: a sixth of the time.  These inputs
 * have no text. */
int __wrap_strcmp(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* ---- using the model ---- */

static void check_error(const struct err *e)
{
    char text[600];

    err_text(e, text, sizeof text);
    if (e->code == ERR_NONE || e->what[0] == '\0' || text[0] == '\0')
        abort();
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            abort();
}

static void describe(const char *path)
{
    struct err e = ERR_INIT, no_text = ERR_INIT;
    struct mw_inspect *i = NULL;
    struct summary_tensor t;
    struct mw_text_info text;

    if (mw_inspect_open(&i, path, &e) != 0) {
        check_error(&e);
        if (i != NULL)
            abort();
        e = (struct err)ERR_INIT;
        if (mw_inspect_open_bare(&i, path, &e) != 0) {
            check_error(&e);
            return;
        }
    }
    if (mw_inspect_summary(i) == NULL)
        abort();
    for (uint32_t n = 0; mw_inspect_tensor(i, n, &t); n++)
        if (t.name == NULL)
            abort();
    if (mw_inspect_text(i, &text, &no_text) != 0)
        check_error(&no_text);
    mw_inspect_close(i);
}

/* The logits after N_EVAL ids, or the error. */
struct outcome {
    bool is_refused;
    struct err err;
    float *logits; /* [n_vocab], allocated */
};

static void evaluate(struct mw_model *m, const struct mw_options *o, uint32_t chunk,
                     uint32_t n_vocab, struct outcome *out)
{
    struct mw_options with = *o;
    struct mw_session *s = NULL;
    uint32_t ids[N_EVAL];

    *out = (struct outcome){ .err = ERR_INIT };
    with.chunk = chunk;
    for (uint32_t i = 0; i < N_EVAL; i++)
        ids[i] = (3 + 7 * i) % n_vocab;
    if (mw_session_open(&s, m, &with, &out->err) != 0 ||
        mw_session_eval(s, ids, N_EVAL, NULL, NULL, &out->err) != 0) {
        check_error(&out->err);
        out->is_refused = true;
    } else {
        out->logits = malloc(n_vocab * sizeof *out->logits);
        if (out->logits == NULL)
            exit(1);
        memcpy(out->logits, mw_session_logits(s), n_vocab * sizeof *out->logits);
        for (uint32_t i = 0; i < n_vocab; i++)
            if (!isfinite(out->logits[i]))
                abort();
    }
    mw_session_close(s);
}

/* A larger chunk may need more memory than there is; nothing else may depend on it. */
static bool is_room(const struct outcome *o)
{
    return o->is_refused && (o->err.code == ERR_BUDGET || o->err.code == ERR_MEMORY);
}

static void use(const char *path)
{
    struct mw_options o;
    struct mw_model_info info;
    struct outcome one, two;
    struct err e = ERR_INIT;
    struct mw_model *m = NULL;
    struct plan plan;
    uint64_t smallest;
    uint32_t largest;

    if (mw_model_open(&m, path, &e) != 0) {
        check_error(&e);
        if (m != NULL)
            abort();
        return;
    }
    mw_model_info(m, &info);
    if (info.n_vocab == 0 || info.n_layer == 0 || info.n_embd == 0)
        abort();
    mw_options_default(&o);
    o.memory_bytes = (uint64_t)64 << 20;
    o.n_ctx = 8;
    o.n_thread = 1;
    o.io = MW_IO_MMAP; /* starts no thread */
    o.exact = true;
    if (mw_plan_fit(m, &o, &smallest, &largest, &e) != 0) {
        check_error(&e);
        e = (struct err)ERR_INIT;
    }
    if (mw_plan(m, &o, &plan, &e) != 0) {
        check_error(&e);
    } else {
        if (plan.sum_bytes > o.memory_bytes)
            abort();
        evaluate(m, &o, 1, info.n_vocab, &one);
        evaluate(m, &o, 2, info.n_vocab, &two);
        if (!is_room(&one) && !is_room(&two)) {
            if (one.is_refused != two.is_refused)
                abort();
            if (!one.is_refused &&
                memcmp(one.logits, two.logits, info.n_vocab * sizeof *one.logits) != 0)
                abort();
        }
        free(one.logits);
        free(two.logits);
    }
    mw_model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_model_make(data, size);

    if (path == NULL)
        return 0;
    if (size % 4 == 0)
        describe(path);
    use(path);
    return 0;
}
