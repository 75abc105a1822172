/* memwall inspect: describe a model file from its headers. */
#include "config.h"

#include <stdio.h>

#include "src/command.h"
#include "src/inspect_print.h"

/* List the tensors of a file that is not a model, then report the error. */
static int list_anyway(const struct options *o, const struct err *why)
{
    struct err ignored = ERR_INIT;
    struct mw_inspect *i = NULL;

    if (o->tensors && mw_inspect_open_bare(&i, o->model, &ignored) == 0) {
        if (o->json)
            inspect_print_json(stdout, i, NULL, true);
        else
            inspect_print_tensors(stdout, i);
        mw_inspect_close(i);
    }
    return report_error(why);
}

static int run_inspect(const struct options *o)
{
    struct err e = ERR_INIT, no_text = ERR_INIT;
    struct mw_inspect *i = NULL;
    struct mw_text_info text, *has_text = NULL;
    const struct err *problem;
    int code = EXIT_OK;

    if (mw_inspect_open(&i, o->model, &e) != 0)
        return list_anyway(o, &e);
    if ((o->json || !o->tensors) && mw_inspect_text(i, &text, &no_text) == 0)
        has_text = &text;
    if (o->json)
        inspect_print_json(stdout, i, has_text, o->tensors);
    else if (o->tensors)
        inspect_print_tensors(stdout, i);
    else
        inspect_print(stdout, mw_inspect_summary(i), has_text, &no_text);
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
    .about = "Print parameters, weights by type, layers, lookup tables, tokenizer and chat\n"
             "format.  Only the headers of the file are read.",
    .examples = "memwall inspect model.gguf\n"
                "memwall inspect model.gguf --tensors\n",
    .bit = CMD_INSPECT,
    .needs_model = true,
    .run = run_inspect,
};
