/*
 * fake_chat.h - mw_chat_* without a model.
 *
 * Programs that test the terminal link with it instead of the engine.  The message determines
 * the answer of the "model":
 *
 *     say TEXT      TEXT, word by word
 *     lines N       N numbered lines
 *     endless       words until the answer is stopped
 *     [/compact]    anywhere: "In short: one.", or endless if the first message is "say ten"
 *     until FILE    words until FILE exists
 *     think         some thinking, then an answer
 *     markdown      an answer with every element of Markdown
 *     wide          Chinese, emoji, marks
 *     evil          control sequences
 *     slow          a prompt that takes many steps of progress
 *     error, full, length    answers that end in this way
 *     anything else          "You said: …"
 *
 * Memory, layers and times in the samples are made up, and the same every time.
 */
#ifndef MEMWALL_TESTS_FAKE_CHAT_H
#define MEMWALL_TESTS_FAKE_CHAT_H

#include <stdint.h>

/* Returns the number of bytes of text that were tokenized so far. */
uint64_t fake_chat_encoded(void);
/* Set the time of a token in microseconds. */
void fake_chat_pace(uint32_t token_us);
/* Spin n threads during each token, as if its arithmetic kept the CPUs busy. */
void fake_chat_burn(int n_thread);

/* An answer was made with these options and this plan (fake_watch.c). */
struct mw_options;
struct plan;
void fake_watch_answered(const struct mw_options *o, const struct plan *p);

/* Rate of the disk from which plans predict, in bytes per nanosecond. */
extern double fake_chat_disk;

#endif
