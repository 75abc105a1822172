#include "config.h"

#include "engine/format/vocab_added.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/vocab_rules.h"

bool added_id(const char *text, size_t len, uint32_t *id)
{
    uint32_t value = 0;

    if (len == 0 || len > 9)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(text[i] - '0');
    }
    *id = value;
    return true;
}

int added_new(struct added_list *l, struct err *e)
{
    if (l->n == l->cap) {
        uint32_t cap = l->cap > 0 ? l->cap * 2 : 64;
        struct json_added *more;

        if (cap > VOCAB_MAX_TOKEN)
            return err_set(e, ERR_UNSUPPORTED, "more than %u added tokens", VOCAB_MAX_TOKEN);
        more = realloc(l->all, cap * sizeof *more);
        if (more == NULL)
            return err_memory(e, "%u added tokens", cap);
        l->all = more;
        l->cap = cap;
    }
    l->all[l->n++] = (struct json_added){ .id = UINT32_MAX };
    l->key[0] = '\0';
    return 0;
}

void added_key(struct added_list *l, const char *text, size_t len)
{
    snprintf(l->key, sizeof l->key, "%.*s", (int)(len < 15 ? len : 15), text);
}

int added_value(struct added_list *l, enum json_event event, const char *text, size_t len,
                struct err *e)
{
    struct json_added *a = &l->all[l->n - 1];
    bool yes = event == JSON_TRUE;

    if (strcmp(l->key, "id") == 0) {
        if (event != JSON_NUMBER || !added_id(text, len, &a->id))
            return err_set(e, ERR_FORMAT, "the id of added token %u is not valid", l->n - 1);
    } else if (strcmp(l->key, "content") == 0 && event == JSON_STRING) {
        if (len == 0 || len > VOCAB_MAX_TEXT)
            return err_set(e, ERR_UNSUPPORTED,
                           "an added token has %zu bytes, which is empty or too long", len);
        a->text = name_pool_copy(&l->texts, text, len, e);
        a->len = len;
        return a->text != NULL ? 0 : -1;
    } else if (strcmp(l->key, "special") == 0) {
        a->special = yes;
    } else if (strcmp(l->key, "lstrip") == 0) {
        a->lstrip = yes;
    } else if (strcmp(l->key, "rstrip") == 0) {
        a->rstrip = yes;
    } else if (strcmp(l->key, "normalized") == 0) {
        a->normalized = yes;
    } else if (strcmp(l->key, "single_word") == 0) {
        a->single_word = yes;
    }
    return 0;
}

void added_free(struct added_list *l)
{
    free(l->all);
    name_pool_free(&l->texts);
    memset(l, 0, sizeof *l);
}
