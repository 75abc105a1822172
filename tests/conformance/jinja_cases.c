/*
 * jinja_cases.c - compare templates and conversations with results of the reference.
 *
 *     jinja_cases FILE...
 *
 * Each line is a JSON object with name, template, variables (an object), and one of three:
 * text;
 * error (the reference refuses the template, too; the value is a note); or refused (the
 * reference
 * has a text, but the evaluator does not support the template).  "messages" among the variables
 * gets sources.
 */
#include "config.h"

#include <sys/mman.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/format/json.h"
#include "engine/text/jinja.h"

#define MEMORY_MAX ((size_t)64 << 20)

static unsigned n_passed, n_failed;

static void failed(const char *name, const char *what, const char *text)
{
    n_failed++;
    printf("not ok %s: %s: %s\n", name, what, text);
}

/* 26 July 2024, 13:05:09, a Friday. */
static const struct tm now = {
    .tm_year = 124,
    .tm_mon = 6,
    .tm_mday = 26,
    .tm_hour = 13,
    .tm_min = 5,
    .tm_sec = 9,
    .tm_wday = 5,
    .tm_yday = 207,
};

static int render(const struct json_node *template, const struct json_node *variables,
                  struct jinja_text *out, struct err *e)
{
    struct jinja_data *d = NULL;
    struct jinja *j = NULL;
    int got = jinja_parse(&j, template->text, template->len, e);

    *out = (struct jinja_text){ 0 };
    if (got == 0)
        got = jinja_data_new(&d, MEMORY_MAX, e);
    if (got == 0) {
        for (const struct json_node *v = variables->first; v != NULL; v = v->next)
            jinja_define(d, v->key,
                         strcmp(v->key, "messages") == 0
                             ? jinja_messages(d, v, false)
                             : jinja_from_json(d, v, JINJA_TRUSTED));
        got = jinja_render(j, d, &now, out, e);
    }
    jinja_data_free(d);
    jinja_free(j);
    return got;
}

/* Runs that cover the text, each from another source than the one before. */
static bool runs_are_right(const struct jinja_text *t)
{
    size_t sum = 0;

    for (size_t i = 0; i < t->n_run; i++) {
        if (t->runs[i].len == 0 || (i > 0 && t->runs[i].source == t->runs[i - 1].source))
            return false;
        sum += t->runs[i].len;
    }
    return sum == t->len;
}

static void check(const struct json_node *c)
{
    const char *name = json_as_string(json_member(c, "name"));
    const struct json_node *text = json_member(c, "text"), *error = json_member(c, "error"),
                           *refused = json_member(c, "refused");
    struct err e = ERR_INIT;
    struct jinja_text out;
    int got = render(json_member(c, "template"), json_member(c, "variables"), &out, &e);

    if (refused != NULL || error != NULL) {
        if (got == 0)
            failed(name, "was expected to be refused", out.bytes);
        else if (refused != NULL && e.code != ERR_UNSUPPORTED && e.code != ERR_BUDGET &&
                 e.code != ERR_FORMAT)
            failed(name, "is refused for another reason", e.what);
        else
            n_passed++;
    } else if (got != 0) {
        failed(name, "error", e.what);
    } else if (out.len != text->len || memcmp(out.bytes, text->text, out.len) != 0) {
        failed(name, "text", out.bytes);
        printf("  expected: %s\n", text->text);
    } else if (!runs_are_right(&out)) {
        failed(name, "runs", "do not add up");
    } else {
        n_passed++;
    }
    jinja_text_free(&out);
}

static void check_line(const char *line, size_t len)
{
    struct err e = ERR_INIT;
    struct json_doc *doc = NULL;
    int fd = memfd_create("case", 0);

    if (fd < 0 || write(fd, line, len) != (ssize_t)len || json_read(&doc, fd, len, &e) != 0)
        failed("line", "cannot be read", e.what);
    else
        check(json_root(doc));
    json_free(doc);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;

    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "r");

        if (f == NULL) {
            failed(argv[i], "cannot be opened", "");
            continue;
        }
        while ((len = getline(&line, &room, f)) > 0)
            check_line(line, (size_t)len);
        fclose(f);
    }
    free(line);
    printf("%u passed, %u failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
