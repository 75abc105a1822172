/*
 * The memory of a rendering, its variables, lists and dicts.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/keyed_hash.h"
#include "engine/base/visible.h"
#include "engine/format/json.h"
#include "engine/text/jinja_internal.h"

#define PIECE_BYTES  ((size_t)4 << 10)
#define SMALL_DICT   8 /* up to this size, members are found without an index */
#define DATA_MIN     ((size_t)16 << 10)
#define MESSAGE_ROOM 200

void jinja_clean_message(char *s)
{
    visible_line(s, strlen(s) + 1, s, strlen(s));
}

void jv_fail(struct vm *vm, enum err_code code, const char *fmt, ...)
{
    char what[MESSAGE_ROOM];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    jinja_clean_message(what);
    err_set(vm->e, code, "line %u: %s", vm->line, what);
    longjmp(vm->fail, 1);
}

/* ---- memory ---- */

static void *take(struct jinja_data *d, size_t n, struct err *e)
{
    size_t left = d->memory.size - d->memory.used;
    bool apart = n > PIECE_BYTES / 4 || arena_size(1) > ARENA_ALIGN;
    char *got;

    if (n > d->max)
        n = d->max + 1;
    n = (n + 15) / 16 * 16;
    if (!apart && n <= d->piece_left) {
        d->piece_left -= n;
        d->piece += n;
        return d->piece - n;
    }
    /* The buffers of the rendering count towards the same limit. */
    if (d->buffer > left || arena_size(apart ? n : PIECE_BYTES) > left - d->buffer) {
        err_set(e, ERR_BUDGET, "the chat template needs more than %zu bytes of memory", d->max);
        return NULL;
    }
    got = arena_take(&d->memory, apart ? n : PIECE_BYTES, e);
    if (got == NULL || apart)
        return got;
    d->piece = got + n;
    d->piece_left = PIECE_BYTES - n;
    return got;
}

void *jv_take(struct vm *vm, size_t n)
{
    void *got = take(vm->d, n, vm->e);

    if (got == NULL)
        jv_fail(vm, ERR_BUDGET, "the template needs more than %zu bytes of memory", vm->d->max);
    return got;
}

int jinja_data_new(struct jinja_data **out, size_t memory_max, struct err *e)
{
    struct jinja_data *d;

    *out = NULL;
    if (memory_max < DATA_MIN)
        return err_set(e, ERR_ARGUMENT,
                       "%zu bytes of memory are too little for a chat template", memory_max);
    d = calloc(1, sizeof *d);
    if (d == NULL)
        return err_memory(e, "a chat template");
    /* Complete pages, because arena_map rounds up. */
    d->max = memory_max / 4096 * 4096;
    if (arena_map(&d->memory, "chat template", d->max, false, e) != 0) {
        free(d);
        return -1;
    }
    *out = d;
    return 0;
}

void jinja_data_free(struct jinja_data *d)
{
    if (d == NULL)
        return;
    arena_unmap(&d->memory);
    free(d);
}

size_t jinja_data_used(const struct jinja_data *d)
{
    return d->memory.used + d->buffer;
}

/* ---- lists ---- */

static bool list_push(struct jinja_data *d, struct list *l, val v, struct err *e)
{
    if (l->n == l->cap) {
        size_t cap = l->cap > 0 ? l->cap * 2 : 4;
        val *item = take(d, cap * sizeof *item, e);

        if (item == NULL)
            return false;
        if (l->n > 0)
            memcpy(item, l->item, l->n * sizeof *item);
        l->item = item;
        l->cap = cap;
    }
    l->item[l->n++] = v;
    return true;
}

struct list *jv_list_new(struct vm *vm, size_t room)
{
    struct list *l = jv_take(vm, sizeof *l);

    *l = (struct list){ .cap = room };
    if (room > 0)
        l->item = jv_take(vm, room * sizeof l->item[0]);
    return l;
}

void jv_push(struct vm *vm, struct list *l, val v)
{
    jv_charge(vm, 1);
    if (!list_push(vm->d, l, v, vm->e))
        jv_fail(vm, ERR_BUDGET, "the template needs more than %zu bytes of memory", vm->d->max);
}

val jv_of_list(struct list *l, enum val_kind kind)
{
    return (val){ .kind = (uint8_t)kind, .u.list = l };
}

val jv_iter(struct vm *vm, struct list *l, const char *name)
{
    struct iter *it = jv_take(vm, sizeof *it);

    *it = (struct iter){ .list = *l, .name = name };
    return (val){ .kind = V_ITER, .u.iter = it };
}

/* ---- dicts ---- */

uint64_t jv_hash_text(const char *p, size_t len)
{
    return keyed_hash(hash_key(), p, len);
}

/* Returns the position of key in the index, or the one where it belongs. */
static size_t find_slot(const struct dict *d, uint64_t hash, val key,
                        bool (*same)(void *ctx, val a, val b), void *ctx, bool *found)
{
    size_t at = (size_t)hash & d->mask;

    for (*found = false; d->index[at] != 0; at = (at + 1) & d->mask) {
        if (same(ctx, d->key[d->index[at] - 1], key)) {
            *found = true;
            break;
        }
    }
    return at;
}

static bool same_in_vm(void *ctx, val a, val b)
{
    return jv_equal(ctx, a, b);
}

/* Builders use only strings as keys. */
static bool same_text(void *ctx, val a, val b)
{
    (void)ctx;
    return jv_same(a.u.s, b.u.s);
}

static bool grow_dict(struct jinja_data *d, struct dict *dict, uint64_t (*hash)(void *, val),
                      void *ctx, struct err *e)
{
    size_t cap = dict->cap > 0 ? dict->cap * 2 : SMALL_DICT, n_index = cap * 2;
    val *key = take(d, cap * sizeof *key, e), *value = take(d, cap * sizeof *value, e);

    if (key == NULL || value == NULL)
        return false;
    if (dict->n > 0) {
        memcpy(key, dict->key, dict->n * sizeof *key);
        memcpy(value, dict->value, dict->n * sizeof *value);
    }
    dict->key = key;
    dict->value = value;
    dict->cap = cap;
    if (cap == SMALL_DICT)
        return true;
    dict->index = take(d, n_index * sizeof dict->index[0], e);
    if (dict->index == NULL)
        return false;
    memset(dict->index, 0, n_index * sizeof dict->index[0]);
    dict->mask = n_index - 1;
    for (size_t i = 0; i < dict->n; i++) {
        size_t at = (size_t)hash(ctx, dict->key[i]) & dict->mask;

        while (dict->index[at] != 0)
            at = (at + 1) & dict->mask;
        dict->index[at] = (uint32_t)i + 1;
    }
    return true;
}

static uint64_t hash_in_vm(void *ctx, val v)
{
    return jv_hash(ctx, v);
}

static uint64_t hash_text(void *ctx, val v)
{
    (void)ctx;
    return jv_hash_text(v.u.s->p, v.u.s->len);
}

/* Returns the value of key, or NULL.  *at is its position if there is an index. */
static val *find(const struct dict *d, uint64_t hash, val key, bool (*same)(void *, val, val),
                 void *ctx, size_t *at)
{
    bool found;

    if (d->index == NULL) {
        for (size_t i = 0; i < d->n; i++) {
            if (same(ctx, d->key[i], key))
                return &d->value[i];
        }
        return NULL;
    }
    *at = find_slot(d, hash, key, same, ctx, &found);
    return found ? &d->value[d->index[*at] - 1] : NULL;
}

struct dict *jv_dict_new(struct vm *vm)
{
    struct dict *d = jv_take(vm, sizeof *d);

    *d = (struct dict){ 0 };
    return d;
}

val *jv_dict_get(struct vm *vm, const struct dict *d, val key)
{
    uint64_t hash = jv_hash(vm, key); /* fails if key cannot be a key */
    size_t at;

    jv_charge(vm, 1);
    return find(d, hash, key, same_in_vm, vm, &at);
}

void jv_dict_set(struct vm *vm, struct dict *d, val key, val v)
{
    uint64_t hash = jv_hash(vm, key);
    size_t at = 0;
    val *old = find(d, hash, key, same_in_vm, vm, &at);

    jv_charge(vm, 2);
    if (old != NULL) {
        *old = v;
        return;
    }
    if (d->n == d->cap) {
        if (!grow_dict(vm->d, d, hash_in_vm, vm, vm->e))
            jv_fail(vm, ERR_BUDGET, "the template needs more than %zu bytes of memory",
                    vm->d->max);
        jv_charge(vm, d->n);
        (void)find(d, hash, key, same_in_vm, vm, &at);
    }
    d->key[d->n] = key;
    d->value[d->n++] = v;
    if (d->index != NULL)
        d->index[at] = (uint32_t)d->n;
}

static bool dict_set_text(struct jinja_data *data, struct dict *d, val key, val v,
                          struct err *e)
{
    uint64_t hash = hash_text(NULL, key);
    size_t at = 0;
    val *old = find(d, hash, key, same_text, NULL, &at);

    if (old != NULL) {
        *old = v;
        return true;
    }
    if (d->n == d->cap) {
        if (!grow_dict(data, d, hash_text, NULL, e))
            return false;
        (void)find(d, hash, key, same_text, NULL, &at);
    }
    d->key[d->n] = key;
    d->value[d->n++] = v;
    if (d->index != NULL)
        d->index[at] = (uint32_t)d->n;
    return true;
}

/* ---- builders ---- */

static struct jinja_value *made(struct jinja_data *d, val v)
{
    val *got = d->failed ? NULL : take(d, sizeof *got, &d->error);

    if (got == NULL) {
        d->failed = true;
        return NULL;
    }
    d->size++;
    *got = v;
    return got;
}

struct jinja_value *jinja_none(struct jinja_data *d)
{
    return made(d, jv_none());
}

struct jinja_value *jinja_bool(struct jinja_data *d, bool b)
{
    return made(d, jv_bool(b));
}

struct jinja_value *jinja_int(struct jinja_data *d, int64_t n)
{
    return made(d, jv_int(n));
}

struct jinja_value *jinja_float(struct jinja_data *d, double x)
{
    return made(d, jv_float(x));
}

struct jinja_value *jinja_string(struct jinja_data *d, const char *s, size_t len,
                                 uint32_t source)
{
    struct jinja_value *v = made(d, jv_none());
    struct str *str = v != NULL ? take(d, sizeof *str, &d->error) : NULL;

    if (str == NULL) {
        d->failed = true;
        return NULL;
    }
    *str = (struct str){ .p = s, .len = len, .n_cp = CP_UNKNOWN, .source = source };
    *v = jv_str(str);
    d->size += len / 16;
    return v;
}

struct jinja_value *jinja_list(struct jinja_data *d)
{
    struct list *l = d->failed ? NULL : take(d, sizeof *l, &d->error);

    if (l == NULL) {
        d->failed = true;
        return NULL;
    }
    *l = (struct list){ 0 };
    return made(d, jv_of_list(l, V_LIST));
}

struct jinja_value *jinja_dict(struct jinja_data *d)
{
    struct dict *dict = d->failed ? NULL : take(d, sizeof *dict, &d->error);

    if (dict == NULL) {
        d->failed = true;
        return NULL;
    }
    *dict = (struct dict){ 0 };
    return made(d, (val){ .kind = V_DICT, .u.dict = dict });
}

void jinja_append(struct jinja_data *d, struct jinja_value *list, struct jinja_value *v)
{
    if (list == NULL || v == NULL || d->failed)
        return;
    d->failed = !list_push(d, list->u.list, *v, &d->error);
}

static val *copied_key(struct jinja_data *d, const char *key)
{
    size_t n = strlen(key);
    char *copy = d->failed ? NULL : take(d, n + 1, &d->error);

    if (copy == NULL) {
        d->failed = true;
        return NULL;
    }
    memcpy(copy, key, n + 1);
    return jinja_string(d, copy, n, JINJA_TRUSTED);
}

void jinja_set(struct jinja_data *d, struct jinja_value *dict, const char *key,
               struct jinja_value *v)
{
    val *k;

    if (dict == NULL || v == NULL || (k = copied_key(d, key)) == NULL)
        return;
    d->failed = !dict_set_text(d, dict->u.dict, *k, *v, &d->error);
}

void jinja_define(struct jinja_data *d, const char *name, struct jinja_value *v)
{
    val *k;

    if (v == NULL || (k = copied_key(d, name)) == NULL)
        return;
    d->failed = !dict_set_text(d, &d->variables, *k, *v, &d->error);
}

/* ---- JSON ---- */

static bool is_role(const char *s, size_t len)
{
    static const char *const roles[] = { "system",    "user",     "assistant", "tool",
                                         "developer", "function", "ipython" };

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strlen(roles[i]) == len && memcmp(roles[i], s, len) == 0)
            return true;
    }
    return false;
}

/* An integer is an int only if JSON spells it as one. */
static struct jinja_value *json_number(struct jinja_data *d, const struct json_node *n,
                                       uint32_t source)
{
    struct jinja_value *v;
    int64_t i;
    double f;

    if (strpbrk(n->text, ".eE") == NULL) {
        if (!json_as_int(n, &i)) {
            d->failed = true;
            err_set(&d->error, ERR_FORMAT, "the number %.40s does not fit 64 bits", n->text);
            return NULL;
        }
        v = jinja_int(d, i);
    } else {
        if (!json_as_float(n, &f)) {
            d->failed = true;
            err_set(&d->error, ERR_FORMAT, "the number %.40s is too large", n->text);
            return NULL;
        }
        v = jinja_float(d, f);
    }
    if (v != NULL)
        v->source = source;
    return v;
}

/* The recursion is as deep as the tree, which json_read bounds. */
static struct jinja_value *from_json(struct jinja_data *d, const struct json_node *n,
                                     uint32_t source, bool message)
{
    struct jinja_value *v = NULL;

    switch (n->kind) {
    case JSON_IS_NULL: v = jinja_none(d); break;
    case JSON_IS_BOOL: v = jinja_bool(d, n->truth); break;
    case JSON_IS_NUMBER: return json_number(d, n, source);
    case JSON_IS_STRING: return jinja_string(d, n->text, n->len, source);
    case JSON_IS_ARRAY:
        v = jinja_list(d);
        for (const struct json_node *k = n->first; k != NULL; k = k->next)
            jinja_append(d, v, from_json(d, k, source, message));
        return v;
    case JSON_IS_OBJECT:
        v = jinja_dict(d);
        for (const struct json_node *k = n->first; k != NULL; k = k->next) {
            bool role = message && k->kind == JSON_IS_STRING && strcmp(k->key, "role") == 0 &&
                        is_role(k->text, k->len);
            struct jinja_value *m = from_json(d, k, role ? JINJA_TRUSTED : source, message);
            struct jinja_value *key = jinja_string(d, k->key, strlen(k->key), source);

            if (v == NULL || m == NULL || key == NULL)
                return NULL;
            d->failed = !dict_set_text(d, v->u.dict, *key, *m, &d->error);
        }
        return v;
    }
    if (v != NULL)
        v->source = source;
    return v;
}

struct jinja_value *jinja_from_json(struct jinja_data *d, const struct json_node *n,
                                    uint32_t source)
{
    return from_json(d, n, source, false);
}

struct jinja_value *jinja_parts(struct jinja_data *d, const char *s, size_t len,
                                uint32_t source)
{
    struct jinja_value *list = jinja_list(d), *part = jinja_dict(d);

    jinja_set(d, part, "type", jinja_string(d, "text", 4, JINJA_TRUSTED));
    jinja_set(d, part, "text", jinja_string(d, s, len, source));
    jinja_append(d, list, part);
    return list;
}

struct jinja_value *jinja_messages(struct jinja_data *d, const struct json_node *array,
                                   bool has_parts)
{
    struct jinja_value *list = jinja_list(d);
    uint32_t source = 1;

    if (array->kind != JSON_IS_ARRAY) {
        d->failed = true;
        err_set(&d->error, ERR_FORMAT, "the messages are not a JSON array");
        return NULL;
    }
    for (const struct json_node *k = array->first; k != NULL; k = k->next, source++) {
        struct jinja_value *message = from_json(d, k, source, true);
        const struct json_node *content = json_get(k, "content");

        if (has_parts && content != NULL && content->kind == JSON_IS_STRING)
            jinja_set(d, message, "content",
                      jinja_parts(d, content->text, content->len, source));
        jinja_append(d, list, message);
    }
    return list;
}
