/*
 * saved_chat.h - a folder, a receipt and short calls for tests of saved chats.
 */
#ifndef MEMWALL_TESTS_LIB_SAVED_CHAT_H
#define MEMWALL_TESTS_LIB_SAVED_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/store/store.h"

extern char dir[64], chats[80]; /* of this test; chats is below dir and does not exist yet */
extern struct err e;
extern const struct mw_receipt receipt;

/* Make a folder for the chats of a test; remove it after the test. */
int saved_chat_set_up(void **state);
int saved_chat_tear_down(void **state);
/* Fail the test with the text of e unless result is 0. */
void ok(int result);
/* Add a message of the user. */
void user_says(struct store *s, const char *text);
/* Add a piece of the answer. */
void answer_says(struct store *s, const char *text, bool is_thinking);
/* Returns the whole file; the caller frees it. */
char *slurp(const char *path, size_t *n);
/* Replace the content of a file. */
void spill(const char *path, const char *s, size_t n);

#endif
