/* Calls of tools in an answer: pieces of any length give the same as the whole, arguments are JSON
 * objects, and calls are those of the tools. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/tool_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
    "\"a\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"o\":{\"anyOf\":[{\"type\":\"boolean\"},"
    "{\"$ref\":\"#/properties/n\"}]}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]";

static int take_text(void *ctx, const char *text, size_t len, struct err *e)
{
    (void)e;
    json_raw(ctx, text, len);
    return 0;
}

static int take_call(void *ctx, const char *name, const char *arguments, size_t len,
                     struct err *e)
{
    struct json_doc *doc = NULL;

    if (strcmp(name, "f") != 0 && strcmp(name, "g") != 0)
        abort();
    if (json_parse(&doc, arguments, len, e) != 0 || json_root(doc)->kind != JSON_IS_OBJECT)
        abort();
    json_free(doc);
    json_raw(ctx, "\n\001", 2);
    json_raw(ctx, name, strlen(name));
    json_raw(ctx, arguments, len);
    json_raw(ctx, "\002\n", 2);
    return 0;
}

/* Write all texts and calls to out. */
static void run(struct json *out, const char *text, size_t len, size_t step)
{
    struct tool_reading how = { tools, sizeof tools - 1, (enum call_form)(len % (CALLS_GEMMA + 1)),
                                len % 2 == 1 };
    struct tool_calls *t;
    struct err e = ERR_INIT;

    json_start(out);
    if (tool_calls_new(&t, &how, take_text, take_call, out, &e) != 0)
        abort();
    for (size_t i = 0; i < len; i += step)
        if (tool_calls_push(t, text + i, len - i < step ? len - i : step, &e) != 0)
            abort();
    if (tool_calls_end(t, &e) != 0)
        abort();
    tool_calls_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json whole, pieces;

    if (size == 0)
        return 0;
    run(&whole, (const char *)data + 1, size - 1, size);
    run(&pieces, (const char *)data + 1, size - 1, data[0] % 16 + 1);
    if (whole.used != pieces.used ||
        (whole.used > 0 && memcmp(whole.buf, pieces.buf, whole.used) != 0))
        abort();
    json_release(&whole);
    json_release(&pieces);
    return 0;
}
