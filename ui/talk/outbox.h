/*
 * outbox.h - text that was not sent yet: files for the next message, and messages that wait
 * until the engine is free.
 *
 *     /file, long pastes ── files ──┐
 *     Enter ────────────────────────┴── message ── queue ── engine
 */
#ifndef MEMWALL_UI_TALK_OUTBOX_H
#define MEMWALL_UI_TALK_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/store/attached.h"

#define OUTBOX_MAX_QUEUE 32 /* as many as STORE_MAX_QUEUE */
#define OUTBOX_MAX_FILES 16

struct outbox_file {
    char name[128]; /* clean */
    char *text;     /* ends in NUL */
    size_t n;
    uint32_t n_token; /* 0: not counted yet */
    bool is_returned; /* all files of a message that came back: text has their names and fences,
                         and name is their label */
};

struct outbox_message {
    char *text;
    struct attached attached; /* files at its start */
};

struct outbox {
    struct outbox_file file[OUTBOX_MAX_FILES];
    size_t n_file;
    struct outbox_message queue[OUTBOX_MAX_QUEUE]; /* oldest first */
    size_t n_queue;
    size_t n_resumed; /* of the queue: from a chat that was opened, not announced yet */
};

void outbox_free(struct outbox *b);

/* Bytes of all files and messages. */
size_t outbox_bytes(const struct outbox *b);

/* Attach text to the next message and take it over.  Returns false if there are too many. */
bool outbox_attach(struct outbox *b, const char *name, char *text, size_t n);
/* Keep the first n files, which may be all. */
void outbox_keep_files(struct outbox *b, size_t n);
/* Keep the first n bytes of file i, and a line that says so.  Returns false without memory. */
bool outbox_cut(struct outbox *b, size_t i, size_t n);
void outbox_forget_tokens(struct outbox *b);
/* Make the message text with the files before it; its text is to be freed, and NULL without
 * memory. */
struct outbox_message outbox_message(const struct outbox *b, const char *text);

/* Append a message and take it over.  Returns false if the queue is full. */
bool outbox_push(struct outbox *b, const struct outbox_message *message);
/* Remove the first of the messages that wait; the caller frees its text. */
struct outbox_message outbox_next(struct outbox *b);
/* Attach the files of a message again.  Returns the text without the attached files; if they
 * cannot be attached, the whole text. */
const char *outbox_return(struct outbox *b, const struct outbox_message *m);
/* Remove all messages: attach their files again, and join the rest of their texts by newlines.
 * The caller frees the text.  NULL if none waits or memory is out; then they stay. */
char *outbox_take_all(struct outbox *b);
/* Describe the first of the messages that wait in one clean line: its files, then its text. */
void outbox_describe_next(const struct outbox *b, char *buf, size_t n);

#endif
