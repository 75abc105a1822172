/*
 * fake_chat.h - mw_chat_* without a model.
 *
 * Linked instead of the engine into programs that test the terminal.  The message
 * determines the answer of the "model":
 *
 *     say TEXT      TEXT, word by word
 *     lines N       N numbered lines
 *     endless       words until it is stopped
 *     until FILE    words until there is such a file
 *     think         thinking, then an answer
 *     markdown      one of everything
 *     wide          Chinese, emoji, marks
 *     evil          bytes that a terminal would obey
 *     slow          a prompt that takes many steps
 *     error, full, length    answers that end so
 *     anything else          "You said: …"
 *
 * Memory, layers and times in the samples are made up, and the same every time.
 */
#ifndef MEMWALL_TESTS_FAKE_CHAT_H
#define MEMWALL_TESTS_FAKE_CHAT_H

#include <stdint.h>

/* Bytes of text that were tokenized so far. */
uint64_t fake_chat_encoded(void);
/* How long a token takes; microseconds. */
void fake_chat_pace(uint32_t token_us);
/* As if each token's arithmetic kept all CPUs busy: spinning threads beside it. */
void fake_chat_burn(int n_thread);

#endif
