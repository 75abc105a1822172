#include "config.h"

#include "ui/talk/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/base/units.h"
#include "engine/base/utf8.h"
#include "ui/words/clean.h"

void outbox_free(struct outbox *b)
{
    while (b->n_queue > 0)
        free(b->queue[--b->n_queue].text);
    outbox_keep_files(b, 0);
}

size_t outbox_bytes(const struct outbox *b)
{
    size_t sum = 0;

    for (size_t i = 0; i < b->n_file; i++)
        sum += b->file[i].n;
    for (size_t i = 0; i < b->n_queue; i++)
        sum += strlen(b->queue[i].text);
    return sum;
}

/* ---- files ---- */

bool outbox_attach(struct outbox *b, const char *name, char *text, size_t n)
{
    struct outbox_file *f = &b->file[b->n_file];

    if (b->n_file == OUTBOX_MAX_FILES) {
        free(text);
        return false;
    }
    clean_line(f->name, sizeof f->name, name, strlen(name));
    f->text = text;
    f->n = n;
    f->n_token = 0;
    f->is_returned = false;
    b->n_file++;
    return true;
}

void outbox_keep_files(struct outbox *b, size_t n)
{
    while (b->n_file > n)
        free(b->file[--b->n_file].text);
}

bool outbox_cut(struct outbox *b, size_t i, size_t n)
{
    struct outbox_file *f = &b->file[i];
    char size[16], mark[80];
    char *text;

    snprintf(mark, sizeof mark, "\n[cut here: the file has %s]\n",
             units_size(size, sizeof size, f->n));
    text = malloc(n + sizeof mark);
    if (text == NULL)
        return false;
    memcpy(text, f->text, n);
    strcpy(text + n, mark);
    free(f->text);
    f->text = text;
    f->n = strlen(text);
    f->n_token = 0;
    return true;
}

void outbox_forget_tokens(struct outbox *b)
{
    for (size_t i = 0; i < b->n_file; i++)
        b->file[i].n_token = 0;
}

#define MORE_BYTES 16 /* of ", and 99 more" */

/* Append a part of a list of n, or how many more there are if the rest does not fit whole.  Only
 * the first part may be cut.  Returns whether there is room for others. */
static bool list_add(char *list, size_t room, const char *between, const char *part, size_t i,
                     size_t n)
{
    size_t used = strlen(list), left = room - used, most;
    size_t len = strlen(part) + (i > 0 ? strlen(between) : 0);

    most = i + 1 == n ? left : left - MORE_BYTES; /* with a NUL */
    if (i > 0 && len >= most) {
        snprintf(list + used, left, "%sand %zu more", between, n - i);
        return false;
    }
    snprintf(list + used, most, "%s%s", i > 0 ? between : "", part);
    if (len >= most) /* not within a character */
        list[utf8_start(list, 0, most - 2)] = '\0';
    return true;
}

/* "notes.txt, 1.2 KiB, 312 tokens", or "2 files: a, b, 12.0 KiB, 3,100 tokens" */
static void describe(const struct outbox_file *file, size_t n_file, struct attached *out)
{
    char size[16], count[24], tokens[40] = "", names[72] = "";
    uint32_t n_token = 0;
    size_t bytes = 0;
    bool is_counted = true;

    for (size_t i = 0; i < n_file; i++)
        if (!list_add(names, sizeof names, ", ", file[i].name, i, n_file))
            break;
    for (size_t i = 0; i < n_file; i++) {
        const struct outbox_file *f = &file[i];

        bytes += f->n;
        n_token += f->n_token;
        is_counted = is_counted && f->n_token > 0;
    }
    if (is_counted)
        snprintf(tokens, sizeof tokens, ", %s token%s",
                 numbers_count(count, sizeof count, n_token), n_token == 1 ? "" : "s");
    units_size(size, sizeof size, bytes);
    if (n_file > 1)
        snprintf(out->label, sizeof out->label, "%zu files: %s, %s%s", n_file, names, size,
                 tokens);
    else
        snprintf(out->label, sizeof out->label, "%s, %s%s", names, size, tokens);
}

/* "notes.txt, 1.2 KiB, 312 tokens; more.txt, 19 B, 4 tokens" if some files came back: the sizes
 * that their labels name cannot be added up. */
static void describe_all(const struct outbox *b, struct attached *out)
{
    bool any_returned = false;

    for (size_t i = 0; i < b->n_file; i++)
        any_returned = any_returned || b->file[i].is_returned;
    if (!any_returned) {
        describe(b->file, b->n_file, out);
        return;
    }
    for (size_t i = 0; i < b->n_file; i++) {
        struct attached one = { 0 };

        if (!b->file[i].is_returned)
            describe(&b->file[i], 1, &one);
        if (!list_add(out->label, sizeof out->label, "; ",
                      b->file[i].is_returned ? b->file[i].name : one.label, i, b->n_file))
            break;
    }
}

/* Write a file as the model gets it.  Returns the end. */
static char *write_file(char *at, const struct outbox_file *f)
{
    bool ends_line = f->n > 0 && f->text[f->n - 1] == '\n';

    if (f->is_returned)
        return stpcpy(at, f->text);
    return at + sprintf(at, "%s:\n```\n%s%s```\n\n", f->name, f->text, ends_line ? "" : "\n");
}

struct outbox_message outbox_message(const struct outbox *b, const char *text)
{
    struct outbox_message m = { 0 };
    size_t room = strlen(text) + 1;
    char *at;

    for (size_t i = 0; i < b->n_file; i++)
        room += b->file[i].n + sizeof b->file[i].name + 32;
    at = m.text = malloc(room);
    if (at == NULL)
        return m;
    for (size_t i = 0; i < b->n_file; i++)
        at = write_file(at, &b->file[i]);
    strcpy(at, text);
    m.attached.bytes = (uint32_t)(at - m.text);
    if (b->n_file > 0)
        describe_all(b, &m.attached);
    return m;
}

/* ---- messages ---- */

bool outbox_push(struct outbox *b, const struct outbox_message *message)
{
    if (b->n_queue == OUTBOX_MAX_QUEUE)
        return false;
    b->queue[b->n_queue++] = *message;
    return true;
}

struct outbox_message outbox_next(struct outbox *b)
{
    struct outbox_message first = b->queue[0];

    memmove(b->queue, b->queue + 1, --b->n_queue * sizeof b->queue[0]);
    return first;
}

const char *outbox_return(struct outbox *b, const struct outbox_message *m)
{
    size_t bytes = m->attached.bytes;
    char *files;

    if (bytes == 0 || bytes > strlen(m->text) || b->n_file == OUTBOX_MAX_FILES)
        return m->text;
    files = strndup(m->text, bytes);
    if (files == NULL || !outbox_attach(b, m->attached.label, files, bytes))
        return m->text;
    b->file[b->n_file - 1].is_returned = true;
    return m->text + bytes;
}

void outbox_describe_next(const struct outbox *b, char *buf, size_t n)
{
    const struct outbox_message *m = &b->queue[0];
    size_t bytes = m->attached.bytes <= strlen(m->text) ? m->attached.bytes : 0;
    char label[sizeof m->attached.label] = "", text[160];

    if (bytes > 0)
        clean_line(label, sizeof label, m->attached.label, strlen(m->attached.label));
    clean_line(text, sizeof text, m->text + bytes, strnlen(m->text + bytes, sizeof text));
    snprintf(buf, n, "%s%s%s", label, label[0] != '\0' && text[0] != '\0' ? ": " : "", text);
}

char *outbox_take_all(struct outbox *b)
{
    size_t room = 1;
    char *all;

    if (b->n_queue == 0)
        return NULL;
    for (size_t i = 0; i < b->n_queue; i++)
        room += strlen(b->queue[i].text) + 1;
    all = malloc(room);
    if (all == NULL)
        return NULL;
    all[0] = '\0';
    for (size_t i = 0; i < b->n_queue; i++) {
        const char *text = outbox_return(b, &b->queue[i]);

        if (all[0] != '\0' && text[0] != '\0')
            strcat(all, "\n");
        strcat(all, text);
        free(b->queue[i].text);
    }
    b->n_queue = b->n_resumed = 0;
    return all;
}
