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

/* A server may support other keywords and notations: its own message then says what is wrong. */
static int check(const struct options *o, const char *text, size_t len, bool is_for_server,
                 struct err *e)
{
    struct json_doc *doc = NULL;
    int rc = 0;

    if (o->schema == NULL)
        return is_for_server ? 0 : mw_grammar_check(text, len, e);
    if (is_for_server)
        rc = json_parse(&doc, text, len, e);
    json_free(doc);
    return rc;
}

int form_read(struct form *out, const struct options *o, bool is_for_server, struct err *e)
{
    const char *path = o->schema != NULL ? o->schema : o->grammar;
    char *text;
    size_t len;
    int rc;

    *out = (struct form){ NULL, NULL };
    if (path == NULL)
        return 0;
    if (o->schema != NULL && o->grammar != NULL)
        return err_set(e, ERR_ARGUMENT, "--schema and --grammar cannot be given together");
    text = small_file_read(path, FILE_MOST, &len, e);
    if (text == NULL)
        return err_at(e, NULL, ERR_NO_OFFSET, o->schema != NULL ? "--schema" : "--grammar");
    rc = check(o, text, len, is_for_server, e);
    if (rc == 0 && o->schema != NULL && !is_for_server)
        rc = of_schema(&out->grammar, text, len, e);
    else if (rc == 0)
        *(o->schema != NULL ? &out->schema : &out->grammar) = text;
    if (out->schema != text && out->grammar != text)
        free(text);
    return rc == 0 ? 0 : err_at(e, path, ERR_NO_OFFSET, NULL);
}

void form_free(struct form *f)
{
    free(f->grammar);
    free(f->schema);
    *f = (struct form){ NULL, NULL };
}
