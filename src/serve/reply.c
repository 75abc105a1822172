/* See reply.h. */
#include "config.h"

#include "src/serve/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct reply_form *reply_form_of(enum request_form form)
{
    static const struct reply_form *const forms[N_FORM] = {
        [FORM_CHAT] = &reply_chat,
        [FORM_COMPLETION] = &reply_completion,
        [FORM_MESSAGES] = &reply_messages,
        [FORM_OLLAMA_CHAT] = &reply_ollama_chat,
        [FORM_OLLAMA_GENERATE] = &reply_ollama_generate,
    };

    return forms[form];
}

int reply_status(const struct err *e)
{
    switch (e->code) {
    case ERR_IO: return 500;
    case ERR_MEMORY:
    case ERR_CANCELLED: return 503;
    case ERR_NONE:
    case ERR_FORMAT:
    case ERR_UNSUPPORTED:
    case ERR_ARGUMENT:
    case ERR_BUDGET:
    case ERR_CONTEXT: break;
    }
    return 400;
}

char *reply_error_text(const struct err *err, char buf[REPLY_ERROR_TEXT])
{
    err_text(err, buf, REPLY_ERROR_TEXT);
    return buf;
}

static const char *type_of(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 500:
    case 503: return "server_error";
    default: return "invalid_request_error";
    }
}

void reply_error(int status, const struct err *err, struct json *out)
{
    char text[REPLY_ERROR_TEXT];

    json_object(out, NULL);
    json_object(out, "error");
    json_string(out, "message", reply_error_text(err, text));
    json_string(out, "type", type_of(status));
    if (err->field[0] != '\0')
        json_string(out, "param", err->field);
    else
        json_null(out, "param");
    if (err->code == ERR_CONTEXT)
        json_string(out, "code", "context_length_exceeded");
    else if (status == 404)
        json_string(out, "code", "not_found");
    else
        json_null(out, "code");
    json_end(out);
    json_end(out);
}

char *reply_join(const struct job *j, enum piece_kind kind, size_t *n)
{
    size_t len = 0;
    char *text;

    for (const struct piece *p = j->first; p != NULL; p = p->next)
        len += p->kind == kind ? p->len : 0;
    *n = len;
    text = len > 0 ? malloc(len) : NULL;
    if (text == NULL)
        return NULL;
    len = 0;
    for (const struct piece *p = j->first; p != NULL; p = p->next)
        if (p->kind == kind) {
            memcpy(text + len, p->text, p->len);
            len += p->len;
        }
    return text;
}

char *reply_time(time_t t, char buf[40])
{
    struct tm utc;

    gmtime_r(&t, &utc);
    strftime(buf, 40, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return buf;
}
