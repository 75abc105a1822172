/*
 * mark_words.h - words in brackets, such as <|user|> and [INST], and those that the chat
 * template of a model writes as marks.
 *
 * Some files give a mark the type of ordinary text.  Text would then be split into its letters,
 * and a message could spell it.  The tokenizer is built with the marks of the template, and
 * makes them control tokens whatever their type is.
 */
#ifndef MEMWALL_ENGINE_TEXT_MARK_WORDS_H
#define MEMWALL_ENGINE_TEXT_MARK_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct catalogue;

/* Part of a text. */
struct span {
    const char *s;
    size_t n;
};

#define MARK_BYTES  48 /* of a mark, with its NUL; longer words are not marks */
#define MARK_N_WORD 64

bool mark_begins(struct span s, const char *with);

/* Returns the word in brackets that s begins with; s NULL: none. */
struct span mark_at(struct span s);

/* Find the next word in brackets of s from *at, which becomes the end of the word. */
bool mark_next_word(struct span s, size_t *at, struct span *word);

/* Whether the name of a mark shows that it belongs to thinking, and not to a setting of it,
 * such as <reasoning_effort>. */
bool mark_is_thinking(struct span word);
/* The same for names that may mean something else: <scratchpad>, <analysis>, <|cot_begin|>. */
bool mark_may_be_thinking(struct span word);

struct mark_words {
    char word[MARK_N_WORD][MARK_BYTES];
    size_t n;
};

/* Add the words of s that are not there.  Words beyond MARK_N_WORD are left out. */
void mark_words_add(struct mark_words *w, struct span s);
bool mark_words_have(const struct mark_words *w, const char *text, size_t len);

/* Find the marks that the template of a model writes, and those of the built-in formats, which
 * the user can choose instead. */
void mark_words_of(const struct catalogue *c, struct mark_words *out);

#endif
