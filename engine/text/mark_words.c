#include "config.h"

#include "engine/text/mark_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/format/vocab.h"
#include "engine/text/chat_internal.h"

static const char *const brackets[][2] = {
    { "<", ">" },
    { "[", "]" },
    { "\u25c1", "\u25b7" },
};

bool mark_begins(struct span s, const char *with)
{
    return s.n >= strlen(with) && memcmp(s.s, with, strlen(with)) == 0;
}

struct span mark_at(struct span s)
{
    for (size_t b = 0; b < sizeof brackets / sizeof brackets[0]; b++) {
        const char *open = brackets[b][0], *close = brackets[b][1];

        for (size_t i = strlen(open); mark_begins(s, open) && i < s.n && i < MARK_BYTES; i++) {
            struct span rest = { s.s + i, s.n - i };
            unsigned char c = (unsigned char)s.s[i];

            if (mark_begins(rest, close) && i > strlen(open) && i + strlen(close) < MARK_BYTES)
                return (struct span){ s.s, i + strlen(close) };
            if (c <= ' ' || strchr("<[\"'\\{}()", c) != NULL)
                break;
        }
    }
    return (struct span){ NULL, 0 };
}

bool mark_next_word(struct span s, size_t *at, struct span *word)
{
    for (; *at < s.n; ++*at) {
        *word = mark_at((struct span){ s.s + *at, s.n - *at });
        if (word->s != NULL) {
            *at += word->n;
            return true;
        }
    }
    return false;
}

static bool has_name(struct span word, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i + n <= word.n; i++)
        if (strncasecmp(word.s + i, name, n) == 0)
            return true;
    return false;
}

bool mark_is_thinking(struct span word)
{
    static const char *const names[] = { "think", "thought", "reason" };
    static const char *const settings[] = { "effort", "mode", "budget", "level", "enable" };

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (has_name(word, settings[i]))
            return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (has_name(word, names[i]))
            return true;
    return false;
}

bool mark_may_be_thinking(struct span word)
{
    static const char *const names[] = { "scratchpad", "analysis", "reflection" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (has_name(word, names[i]))
            return true;
    for (size_t i = 1; i + 4 < word.n; i++)
        if (strncasecmp(word.s + i, "cot", 3) == 0 && !isalnum((unsigned char)word.s[i - 1]) &&
            !isalnum((unsigned char)word.s[i + 3]))
            return true;
    return false;
}

void mark_words_add(struct mark_words *w, struct span s)
{
    struct span word;

    for (size_t at = 0; w->n < MARK_N_WORD && mark_next_word(s, &at, &word);)
        if (!mark_words_have(w, word.s, word.n)) {
            memcpy(w->word[w->n], word.s, word.n);
            w->word[w->n++][word.n] = '\0';
        }
}

bool mark_words_have(const struct mark_words *w, const char *text, size_t len)
{
    for (size_t i = 0; i < w->n; i++)
        if (strlen(w->word[i]) == len && memcmp(w->word[i], text, len) == 0)
            return true;
    return false;
}

/* The control tokens of the built-in formats, and the marks of thinking and of ends of most
 * families. */
static const char built_in[] =
    "<|turn><turn|><|channel><channel|><start_of_turn><end_of_turn><|start_header_id|>"
    "<|end_header_id|><|eot_id|><|im_start|><|im_end|><|im_sep|><|user|><|assistant|><|system|>"
    "<|end|>[INST][/INST][SYSTEM_PROMPT][/SYSTEM_PROMPT][THINK][/THINK]<think></think>"
    "<|endoftext|><|end_of_text|><|eom_id|><|return|><|call|><EOT>[EOS]";

void mark_words_of(const struct catalogue *c, struct mark_words *out)
{
    struct err ignored = ERR_INIT;
    char *text = NULL;
    size_t len = 0;

    *out = (struct mark_words){ 0 };
    mark_words_add(out, (struct span){ built_in, sizeof built_in - 1 });
    /* If the template cannot be read or used, the choice of the chat format reports it. */
    if (vocab_chat_template(c, &text, &len, &ignored) == 0 && text != NULL)
        chat_template_words(text, len, out);
    free(text);
}
