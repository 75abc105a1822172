/* See json.h. */
#include "config.h"

#include "engine/base/json_write.h"
#include "engine/format/json.h"

/* The depth is that of the reader, which bounds it. */
void json_copy(struct json *to, const char *key, const struct json_node *n)
{
    switch (n->kind) {
    case JSON_IS_NULL: json_null(to, key); break;
    case JSON_IS_BOOL: json_bool(to, key, n->truth); break;
    case JSON_IS_NUMBER: json_number(to, key, n->text, n->len); break;
    case JSON_IS_STRING: json_string_n(to, key, n->text, n->len); break;
    case JSON_IS_OBJECT:
    case JSON_IS_ARRAY:
        if (n->kind == JSON_IS_OBJECT)
            json_object(to, key);
        else
            json_array(to, key);
        for (const struct json_node *in = n->first; in != NULL; in = in->next)
            json_copy(to, n->kind == JSON_IS_OBJECT ? in->key : NULL, in);
        json_end(to);
        break;
    }
}
