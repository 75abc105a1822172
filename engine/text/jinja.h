/*
 * jinja.h - evaluate the chat template that a model carries.
 *
 * Templates are written in the subset of Jinja that published chat templates use, as
 * transformers evaluates it: trim_blocks, lstrip_blocks, {% generation %}, undefined values
 * that print as nothing.  They come with model files, so they are hostile: the size of a
 * template, the depth of its expressions, the steps of a rendering, the memory of its values
 * and the length of its output are all bounded, and each bound ends in an error.
 *
 * Every byte of every string has a source.  Source 0 is the template and other text that
 * the program vouches for; text from a message has a source of its own.  Sources survive
 * slicing, joining, trimming, replacing and every other operation.  The code that turns the
 * output into ids therefore knows which bytes may spell a control token.
 *
 * The subset has what published templates use, their branches for tools included: the
 * statements if, for, set, macro, call, filter, generation, break and continue, the filters in
 * jinja_filters.c, the tests in jinja_tests.c, the methods in jinja_methods.c.  All else is
 * refused by name.  An example is formatting with "%".  Integers have 64 bits.
 * Text that is marked as safe can only be joined and printed.  map, select and the like compute
 * all of their values at once, so an error in a value that is never read is an error here.
 */
#ifndef MEMWALL_ENGINE_TEXT_JINJA_H
#define MEMWALL_ENGINE_TEXT_JINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "engine/base/err.h"

#define JINJA_TEMPLATE_MAX ((size_t)1 << 20) /* bytes of a template */
#define JINJA_TRUSTED      0u                /* source of the template's own text */

/* ---- template ---- */

struct jinja; /* a parsed template: immutable, so any thread may render it */

/*
 * Parse len bytes of text (UTF-8; copied).  Returns 0, or -1 with *e: ERR_FORMAT for a
 * syntax error, ERR_UNSUPPORTED for Jinja outside the subset.  e->what names the line.
 */
int jinja_parse(struct jinja **out, const char *text, size_t len, struct err *e);
void jinja_free(struct jinja *j); /* NULL: does nothing */

/* ---- variables ---- */

/*
 * The variables of one rendering, and every value that it makes.  memory_max bounds the
 * bytes of all of them and of the output.  The steps of the rendering follow from it: no more
 * than 3 million or memory_max, whichever is less, plus a share for the size of the variables.
 * One rendering per jinja_data; one thread at a time.
 */
struct jinja_data;
struct jinja_value; /* owned by its jinja_data */

int jinja_data_new(struct jinja_data **out, size_t memory_max, struct err *e);
void jinja_data_free(struct jinja_data *d);

/* Builders return NULL if memory or memory_max is exhausted.  Functions that take a value
 * accept that NULL and do nothing.  jinja_render then reports the error. */
struct jinja_value *jinja_none(struct jinja_data *d);
struct jinja_value *jinja_bool(struct jinja_data *d, bool b);
struct jinja_value *jinja_int(struct jinja_data *d, int64_t n);
struct jinja_value *jinja_float(struct jinja_data *d, double x);
/* Make a string of len bytes with one source.  They are not copied and must outlive d. */
struct jinja_value *jinja_string(struct jinja_data *d, const char *s, size_t len,
                                 uint32_t source);
struct jinja_value *jinja_list(struct jinja_data *d);
struct jinja_value *jinja_dict(struct jinja_data *d);
void jinja_append(struct jinja_data *d, struct jinja_value *list, struct jinja_value *v);
/* key is copied. */
void jinja_set(struct jinja_data *d, struct jinja_value *dict, const char *key,
               struct jinja_value *v);
/* Make v a variable of the template.  name is copied. */
void jinja_define(struct jinja_data *d, const char *name, struct jinja_value *v);

/*
 * Make a value of JSON.  Every string, number and key in it has this source.  The bytes of
 * strings are not copied: the JSON tree must outlive d.  Object members keep their order; the
 * last member of a name wins.  Returns NULL like the builders, and also for a number that
 * does not fit 64 bits; jinja_render then reports the error.
 */
struct json_node;
struct jinja_value *jinja_from_json(struct jinja_data *d, const struct json_node *n,
                                    uint32_t source);

/*
 * The same for an array of messages: message i has source i + 1.  The exception is the value
 * of "role" if it is system, user, assistant, tool, developer, function or ipython: templates
 * spell control tokens with these, so they are JINJA_TRUSTED.  has_parts: content that is a text
 * becomes a list of one part.
 */
struct jinja_value *jinja_messages(struct jinja_data *d, const struct json_node *array,
                                   bool has_parts);
/* Make [{"type": "text", "text": s}], as clients send it.  s is not copied. */
struct jinja_value *jinja_parts(struct jinja_data *d, const char *s, size_t len,
                                uint32_t source);

/* Returns the bytes that d uses, at most memory_max. */
size_t jinja_data_used(const struct jinja_data *d);

/* ---- rendering ---- */

/* len bytes of one source. */
struct jinja_run {
    uint32_t source;
    size_t len;
};

struct jinja_text {
    char *bytes; /* owned; a NUL follows the last byte */
    size_t len;
    struct jinja_run *runs; /* owned; neighbours differ, lengths add up to len */
    size_t n_run;
};

void jinja_text_free(struct jinja_text *t);

/*
 * Render j with the variables of d.  now is the local time that strftime_now prints.
 * Returns 0, or -1 with *e and an empty *out:
 *   ERR_ARGUMENT     the template called raise_exception; e->what is its message
 *   ERR_FORMAT       an operation that Jinja refuses as well (wrong type, undefined name)
 *   ERR_UNSUPPORTED  a filter, test or method outside the subset; e->what names it
 *   ERR_BUDGET       steps, memory, depth or output exceeded their bound
 *   ERR_MEMORY       an allocation failed
 * e->what names the line of the template.
 */
int jinja_render(const struct jinja *j, struct jinja_data *d, const struct tm *now,
                 struct jinja_text *out, struct err *e);

#endif
