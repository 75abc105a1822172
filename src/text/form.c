/* See form.h. */
#include "config.h"

#include "src/text/form.h"

#include <stdlib.h>

#include "engine/base/json_write.h"
#include "engine/base/small_file.h"
#include "engine/memwall.h"

#define FILE_MOST ((size_t)1 << 20)

/* The grammar of a schema, with a NUL. */
static int of_schema(char **out, const char *schema, size_t len, struct err *e)
{
    struct json grammar;
    int rc;

    json_start(&grammar);
    rc = mw_grammar_of_schema(&grammar, schema, len, e);
    if (rc != 0) {
        json_release(&grammar);
        return -1;
    }
    json_raw(&grammar, "", 1);
    if (grammar.failed) {
        json_release(&grammar);
        return err_memory(e, "a grammar");
    }
    *out = grammar.buf;
    return 0;
}

int form_read(char **out, const struct options *o, struct err *e)
{
    const char *path = o->schema != NULL ? o->schema : o->grammar;
    char *text;
    size_t len;
    int rc;

    *out = NULL;
    if (path == NULL)
        return 0;
    if (o->schema != NULL && o->grammar != NULL)
        return err_set(e, ERR_ARGUMENT, "--schema and --grammar cannot be given together");
    text = small_file_read(path, FILE_MOST, &len, e);
    if (text == NULL)
        return -1;
    rc = o->schema != NULL ? of_schema(out, text, len, e) : mw_grammar_check(text, len, e);
    if (rc == 0 && o->schema == NULL)
        *out = text;
    else
        free(text);
    return rc == 0 ? 0 : err_at(e, path, ERR_NO_OFFSET, NULL);
}
