#include "config.h"

#include "engine/text/chat_trial.h"

#include <ctype.h>
#include <string.h>

struct chat_message chat_trial_message(enum chat_role role, const char *text)
{
    return (struct chat_message){ .role = role, .content = text, .len = strlen(text) };
}

bool chat_trial(const struct chat_format *f, const struct tokenizer *t,
                const struct chat_message *m, size_t n, bool has_prompt,
                struct chat_prompt *out)
{
    const struct chat_options o = { .add_generation_prompt = has_prompt };
    struct err ignored = ERR_INIT;

    *out = (struct chat_prompt){ 0 };
    return chat_format_show(f, t, m, n, &o, out, &ignored) == 0;
}

void chat_copy_mark(char *out, struct span s)
{
    memcpy(out, s.s, s.n);
    out[s.n] = '\0';
}

bool chat_is_added(const struct tokenizer *t, uint32_t id)
{
    enum token_kind kind = tokenizer_kind(t, id);

    return kind == TOKEN_CONTROL || kind == TOKEN_USER;
}

bool chat_has_token(const void *t, const char *mark)
{
    int64_t id = tokenizer_find(t, mark, strlen(mark));

    return id >= 0 && chat_is_added(t, (uint32_t)id);
}

struct span chat_last_line(struct span s)
{
    size_t from = s.n;

    while (from > 0 && s.s[from - 1] != '\n')
        from--;
    return (struct span){ s.s + from, s.n - from };
}

bool chat_is_distinctive(struct span s)
{
    size_t n_letter = 0, at;
    bool has_sign = chat_find(s, "\uff1a", false, &at);

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.s[i];

        n_letter += isalpha(c) || c >= 0x80;
        has_sign = has_sign || ispunct(c);
    }
    return has_sign && n_letter > 1;
}
