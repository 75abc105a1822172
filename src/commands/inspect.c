/* memwall inspect: describe a model file from its headers. */
#include "config.h"

#include <stdio.h>

#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/machine/products_print.h"
#include "src/models/exponents_print.h"
#include "src/models/inspect_print.h"
#include "src/settings.h"

/* List the tensors of a file that is not a model, then report the error. */
static int list_anyway(const struct options *o, const struct err *why)
{
    struct err ignored = ERR_INIT;
    const struct inspect_head none = { .has_head = false };
    struct mw_inspect *i = NULL;

    if (o->tensors && mw_inspect_open_bare(&i, o->model, &ignored) == 0) {
        if (o->json)
            inspect_print_json(stdout, i, NULL, &none, true);
        else
            inspect_print_tensors(stdout, i);
        mw_inspect_close(i);
    }
    return report_error(why);
}

static int inspect_products(const struct options *o)
{
    struct settings_notice notice;
    struct mw_options engine;
    struct mw_model *m = NULL;
    struct err e = ERR_INIT;
    int code = EXIT_OK;

    settings_engine(o, &engine, &notice);
    if (mw_model_open(&m, o->model, &e) != 0)
        return report_error(&e);
    limits_ensure(m, o->model, &engine, LIMITS_KEPT);
    if (products_print(stdout, m, &engine, o->json, &e) != 0)
        code = report_error(&e);
    mw_model_close(m);
    return code;
}

static int inspect_exponents(const struct options *o)
{
    struct mw_exponents counts[2];
    struct mw_inspect *i = NULL;
    struct err e = ERR_INIT;
    int code = EXIT_OK;

    if (mw_inspect_open(&i, o->model, &e) != 0)
        return report_error(&e);
    if (mw_inspect_exponents(i, false, &counts[0], &e) != 0 ||
        mw_inspect_exponents(i, true, &counts[1], &e) != 0)
        code = report_error(&e);
    else if (o->json)
        exponents_print_json(stdout, counts);
    else
        exponents_print(stdout, counts);
    mw_inspect_close(i);
    return code;
}

/* Find what drafts for the model. */
static void find_head(const struct options *o, struct inspect_head *out)
{
    const struct mw_options engine = { .draft = MW_DRAFT_AUTO };
    struct mw_model *m = NULL;
    struct err ignored = ERR_INIT;

    *out = (struct inspect_head){ .has_head = false };
    if (mw_model_open(&m, o->model, &ignored) != 0)
        return;
    (void)mw_head_attach(m, o->model, &engine, &ignored);
    out->has_head = mw_model_head(m, &out->info);
    if (mw_model_no_head(m) != NULL)
        err_text(mw_model_no_head(m), out->why_not, sizeof out->why_not);
    mw_model_close(m);
}

static int run_inspect(const struct options *o)
{
    struct inspect_head head;
    struct err e = ERR_INIT, no_text = ERR_INIT;
    struct mw_inspect *i = NULL;
    struct mw_text_info text, *has_text = NULL;
    const struct err *problem;
    int code = EXIT_OK;

    if (o->exponents)
        return inspect_exponents(o);
    if (o->products)
        return inspect_products(o);
    if (mw_inspect_open(&i, o->model, &e) != 0)
        return list_anyway(o, &e);
    if ((o->json || !o->tensors) && mw_inspect_text(i, &text, &no_text) == 0)
        has_text = &text;
    find_head(o, &head);
    if (o->json)
        inspect_print_json(stdout, i, has_text, &head, o->tensors);
    else if (o->tensors)
        inspect_print_tensors(stdout, i);
    else
        inspect_print(stdout, mw_inspect_summary(i), has_text, &no_text, &head);
    problem = mw_inspect_problem(i);
    /* An unknown tokenizer is not an error; a broken one is. */
    if (problem != NULL)
        code = report_error(problem);
    else if (no_text.code != ERR_NONE && no_text.code != ERR_UNSUPPORTED)
        code = report_error(&no_text);
    mw_inspect_close(i);
    return code;
}

const struct command cmd_inspect = {
    .name = "inspect",
    .help = "describe a model file: sizes, types, layers, tokenizer",
    .about =
        "Print parameters, weights by type, layers, lookup tables, tokenizer and chat\n"
        "format.  Only the headers of the file are read.\n"
        "With --products, measure how fast this machine multiplies with each weight type:\n"
        "billions of operations a second of one thread, by the number of tokens.\n"
        "With --exponents, read 64 KiB of each BF16 and F16 matrix: the histogram of the\n"
        "exponents, and the memory that packing takes.",
    .examples = "memwall inspect model.gguf\n"
                "memwall inspect model.gguf --tensors\n"
                "memwall inspect model.gguf --products\n",
    .bit = CMD_INSPECT,
    .needs_model = true,
    .run = run_inspect,
};
