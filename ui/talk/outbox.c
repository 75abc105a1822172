#include "config.h"

#include "ui/talk/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/base/utf8.h"
#include "ui/text/clean.h"
#include "ui/text/receipt.h"

void outbox_free(struct outbox *b)
{
    while (b->n_queue > 0)
        free(b->queue[--b->n_queue].text);
    outbox_drop_files(b);
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
    b->n_file++;
    return true;
}

void outbox_drop_files(struct outbox *b)
{
    while (b->n_file > 0)
        free(b->file[--b->n_file].text);
}

void outbox_forget_tokens(struct outbox *b)
{
    for (size_t i = 0; i < b->n_file; i++)
        b->file[i].n_token = 0;
}

/* "notes.txt, 1.2 KiB, 312 tokens", or "2 files: a, b, 12.0 KiB, 3,100 tokens" */
static void describe(const struct outbox *b, struct attached *out)
{
    char size[16], count[24], tokens[40] = "", names[72] = "";
    uint32_t n_token = 0;
    size_t bytes = 0;
    bool is_counted = true;

    for (size_t i = 0; i < b->n_file; i++) {
        const struct outbox_file *f = &b->file[i];
        size_t used = strlen(names);

        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", f->name);
        bytes += f->n;
        n_token += f->n_token;
        is_counted = is_counted && f->n_token > 0;
    }
    if (strlen(names) == sizeof names - 1) /* cut, perhaps within a character */
        names[utf8_start(names, 0, sizeof names - 2)] = '\0';
    if (is_counted)
        snprintf(tokens, sizeof tokens, ", %s tokens",
                 receipt_count(count, sizeof count, n_token));
    units_size(size, sizeof size, bytes);
    if (b->n_file > 1)
        snprintf(out->label, sizeof out->label, "%zu files: %s, %s%s", b->n_file, names, size,
                 tokens);
    else
        snprintf(out->label, sizeof out->label, "%s, %s%s", names, size, tokens);
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
    for (size_t i = 0; i < b->n_file; i++) {
        const struct outbox_file *f = &b->file[i];
        bool ends_line = f->n > 0 && f->text[f->n - 1] == '\n';

        at += sprintf(at, "%s:\n```\n%s%s```\n\n", f->name, f->text, ends_line ? "" : "\n");
    }
    strcpy(at, text);
    m.attached.bytes = (uint32_t)(at - m.text);
    if (b->n_file > 0)
        describe(b, &m.attached);
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
        if (i > 0)
            strcat(all, "\n");
        strcat(all, b->queue[i].text);
        free(b->queue[i].text);
    }
    b->n_queue = b->n_resumed = 0;
    return all;
}
