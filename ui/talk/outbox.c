#include "config.h"

#include "ui/talk/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/clean.h"

void outbox_free(struct outbox *b)
{
    while (b->n_queue > 0)
        free(b->queue[--b->n_queue]);
    outbox_drop_files(b);
}

size_t outbox_bytes(const struct outbox *b)
{
    size_t sum = 0;

    for (size_t i = 0; i < b->n_file; i++)
        sum += b->file[i].n;
    for (size_t i = 0; i < b->n_queue; i++)
        sum += strlen(b->queue[i]);
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

char *outbox_message(const struct outbox *b, const char *text)
{
    size_t room = strlen(text) + 1;
    char *out, *at;

    for (size_t i = 0; i < b->n_file; i++)
        room += b->file[i].n + sizeof b->file[i].name + 32;
    at = out = malloc(room);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < b->n_file; i++) {
        const struct outbox_file *f = &b->file[i];
        bool ends_line = f->n > 0 && f->text[f->n - 1] == '\n';

        at += sprintf(at, "%s:\n```\n%s%s```\n\n", f->name, f->text, ends_line ? "" : "\n");
    }
    strcpy(at, text);
    return out;
}

/* ---- messages ---- */

bool outbox_push(struct outbox *b, char *message)
{
    if (b->n_queue == OUTBOX_MAX_QUEUE)
        return false;
    b->queue[b->n_queue++] = message;
    return true;
}

char *outbox_next(struct outbox *b)
{
    char *first = b->queue[0];

    if (b->n_queue == 0)
        return NULL;
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
        room += strlen(b->queue[i]) + 1;
    all = malloc(room);
    if (all == NULL)
        return NULL;
    all[0] = '\0';
    for (size_t i = 0; i < b->n_queue; i++) {
        if (i > 0)
            strcat(all, "\n");
        strcat(all, b->queue[i]);
        free(b->queue[i]);
    }
    b->n_queue = b->n_resumed = 0;
    return all;
}
