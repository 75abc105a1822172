/* Render a conversation as the model would see it, with a vocabulary alone. */
#include "config.h"

#include <stdlib.h>

#include "engine/format/json.h"
#include "engine/session/options.h"
#include "engine/session/vocab.h"
#include "engine/text/chat_format.h"

/* An error in the messages names their file, an error in the template names its own. */
static int render(const struct mw_vocab *v, const struct chat_choice *choice,
                  const struct json_node *messages, const struct mw_prompt_options *o,
                  struct chat_prompt *out, struct err *e)
{
    struct chat_options options = { .add_generation_prompt = !o->no_generation_prompt,
                                    .is_strict = true };

    options_think(o->think, &options);
    if (chat_format_check_json(messages, e) != 0)
        return err_at(e, o->name, ERR_NO_OFFSET, NULL);
    if (chat_format_render_json(chat_choice_format(choice), v->tokenizer, messages, &options,
                                out, e) == 0)
        return 0;
    if (chat_choice_source(choice) != CHAT_EVALUATED)
        return err_at(e, o->name, ERR_NO_OFFSET, NULL);
    if (o->template != NULL)
        return err_at(e, o->template_name, ERR_NO_OFFSET, NULL);
    return err_at(e, v->catalogue->path, ERR_NO_OFFSET, "chat template");
}

int mw_vocab_chat(const struct mw_vocab *v, const char *json, size_t len,
                  const struct mw_prompt_options *o, struct mw_prompt *out, struct err *e)
{
    const struct chat_wish wish = {
        .format = o->format, .template = o->template, .len = o->template_len
    };
    struct chat_choice *choice = NULL;
    struct chat_prompt prompt = { 0 };
    struct json_doc *doc = NULL;
    int rc;

    *out = (struct mw_prompt){ 0 };
    if (json_parse(&doc, json, len, e) != 0)
        return err_at(e, o->name, ERR_NO_OFFSET, NULL);
    rc = chat_choose(&choice, v->catalogue, v->tokenizer, &wish, e);
    if (rc != 0 && o->template != NULL)
        err_at(e, o->template_name, ERR_NO_OFFSET, NULL);
    if (rc == 0)
        rc = render(v, choice, json_root(doc), o, &prompt, e);
    if (rc == 0) {
        chat_choice_notice(choice, false, out->notice, sizeof out->notice);
        out->text = prompt.text;
        out->len = prompt.len;
        out->ids = prompt.ids.id;
        out->n_id = prompt.ids.n;
    }
    json_free(doc);
    chat_choice_free(choice);
    return rc;
}

void mw_prompt_free(struct mw_prompt *p)
{
    free(p->text);
    free(p->ids);
    *p = (struct mw_prompt){ 0 };
}
