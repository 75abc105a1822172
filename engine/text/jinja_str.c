/*
 * Strings whose bytes have sources, and the buffer that builds them.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

static const struct str empty = { .p = "", .n_cp = 0 };

val jv_new_str(struct vm *vm, const char *p, size_t len, uint32_t source)
{
    struct str *s;

    if (len == 0)
        return jv_str(&empty);
    s = jv_take(vm, sizeof *s);
    *s = (struct str){ .p = p, .len = len, .n_cp = CP_UNKNOWN, .source = source };
    return jv_str(s);
}

/* Threads may share the strings of the template, so nothing is stored in them.  Their number
 * of code points is known from the start. */
size_t jv_cps(struct vm *vm, const struct str *s)
{
    size_t n = 0;

    if (s->n_cp != CP_UNKNOWN)
        return s->n_cp;
    jv_charge_bytes(vm, s->len);
    for (size_t i = 0; i < s->len; i++)
        n += ((unsigned char)s->p[i] & 0xc0u) != 0x80;
    ((struct str *)(uintptr_t)s)->n_cp = n;
    return n;
}

size_t jv_offset(struct vm *vm, const struct str *s, size_t i)
{
    size_t n = jv_cps(vm, s), at;

    if (i >= n)
        return s->len;
    if (n == s->len)
        return i;
    if (i <= n / 2) {
        jv_charge_bytes(vm, i);
        for (at = 0; i > 0; i--)
            do
                at++;
            while (((unsigned char)s->p[at] & 0xc0u) == 0x80);
        return at;
    }
    jv_charge_bytes(vm, n - i);
    for (at = s->len, i = n - i; i > 0; i--)
        do
            at--;
        while (((unsigned char)s->p[at] & 0xc0u) == 0x80);
    return at;
}

/* Returns the segment of the byte at `at` of the store, searching from segment `from`. */
static uint32_t find_seg(const struct store *st, uint32_t from, size_t at)
{
    size_t low = from, high = st->n_seg - 1;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (st->seg[mid].end > at)
            high = mid;
        else
            low = mid + 1;
    }
    return (uint32_t)low;
}

val jv_cut(struct vm *vm, const struct str *s, size_t from, size_t to)
{
    struct str *part;

    if (from >= to)
        return jv_str(&empty);
    if (from == 0 && to == s->len)
        return jv_str(s);
    part = jv_take(vm, sizeof *part);
    *part = *s;
    part->p = s->p + from;
    part->len = to - from;
    part->n_cp = s->n_cp == s->len ? part->len : CP_UNKNOWN;
    part->built = false;
    if (s->store != NULL) {
        size_t at = (size_t)(part->p - s->store->bytes);

        part->first = find_seg(s->store, s->first, at);
        if (s->store->seg[part->first].end >= at + part->len) {
            part->source = s->store->seg[part->first].source;
            part->store = NULL;
        }
    }
    return jv_str(part);
}

bool jv_piece(const struct str *s, size_t *at, size_t to, struct piece *out)
{
    size_t begin, end;
    uint32_t i;

    if (*at >= to)
        return false;
    if (s->store == NULL) {
        *out = (struct piece){ s->p + *at, to - *at, s->source };
        *at = to;
        return true;
    }
    begin = (size_t)(s->p - s->store->bytes);
    i = find_seg(s->store, s->first, begin + *at);
    end = s->store->seg[i].end - begin;
    if (end > to || i == s->store->n_seg - 1)
        end = to;
    *out = (struct piece){ s->p + *at, end - *at, s->store->seg[i].source };
    *at = end;
    return true;
}

uint32_t jv_str_source(const struct str *s)
{
    struct piece piece;

    for (size_t at = 0; jv_piece(s, &at, s->len, &piece);) {
        if (piece.source != JINJA_TRUSTED)
            return piece.source;
    }
    return JINJA_TRUSTED;
}

uint32_t jv_source_at(const struct str *s, size_t at)
{
    struct piece piece;

    return jv_piece(s, &at, at + 1, &piece) ? piece.source : JINJA_TRUSTED;
}

bool jv_same(const struct str *a, const struct str *b)
{
    return a->len == b->len && (a->p == b->p || a->len == 0 || memcmp(a->p, b->p, a->len) == 0);
}

bool jv_is(const struct str *s, const char *literal)
{
    return s->len == strlen(literal) && memcmp(s->p, literal, s->len) == 0;
}

val jv_safe(struct vm *vm, val v)
{
    struct str *s = jv_take(vm, sizeof *s);

    *s = *v.u.s;
    s->safe = true;
    return jv_str(s);
}

void jv_refuse_safe(struct vm *vm, const struct str *s)
{
    if (s->safe)
        jv_fail(vm, ERR_UNSUPPORTED, "text that is marked as safe can only be joined and printed");
}

/* ---- joining ---- */

static void store_seg(struct vm *vm, struct store *st, size_t len, uint32_t source)
{
    if (len == 0)
        return;
    st->used += len;
    if (st->n_seg > 0 && st->seg[st->n_seg - 1].source == source) {
        st->seg[st->n_seg - 1].end = st->used;
        return;
    }
    if (st->n_seg == st->cap_seg) {
        size_t cap = st->cap_seg > 0 ? st->cap_seg * 2 : 4;
        struct seg *seg = jv_take(vm, cap * sizeof *seg);

        if (st->n_seg > 0)
            memcpy(seg, st->seg, st->n_seg * sizeof *seg);
        st->seg = seg;
        st->cap_seg = cap;
    }
    st->seg[st->n_seg++] = (struct seg){ st->used, source };
}

static void store_add(struct vm *vm, struct store *st, const struct str *s)
{
    struct piece piece;

    for (size_t at = 0; jv_piece(s, &at, s->len, &piece);) {
        memcpy(st->bytes + st->used, piece.p, piece.len);
        store_seg(vm, st, piece.len, piece.source);
    }
}

/*
 * A string that is extended again and again gets room to grow, so that a loop that collects
 * text copies each byte a few times and not once for each iteration.
 */
val jv_join(struct vm *vm, const struct str *const *part, size_t n)
{
    const struct str *first = part[0];
    struct store *st = first->store;
    size_t len = 0, n_cp = 0;
    struct str *s;

    for (size_t i = 0; i < n; i++) {
        if (__builtin_add_overflow(len, part[i]->len, &len))
            jv_fail(vm, ERR_BUDGET, "a string is too long");
        n_cp = n_cp == CP_UNKNOWN || part[i]->n_cp == CP_UNKNOWN ? CP_UNKNOWN
                                                                 : n_cp + part[i]->n_cp;
    }
    if (len == first->len)
        return jv_str(first);
    s = jv_take(vm, sizeof *s);
    if (st != NULL && first->p + first->len == st->bytes + st->used &&
        st->cap - st->used >= len - first->len) {
        jv_charge_bytes(vm, len - first->len);
        *s = *first;
    } else {
        jv_charge_bytes(vm, len);
        st = jv_take(vm, sizeof *st);
        *st = (struct store){ .cap = first->built ? len * 2 : len };
        st->bytes = jv_take(vm, st->cap);
        *s = (struct str){ .p = st->bytes, .store = st };
        store_add(vm, st, first);
    }
    for (size_t i = 1; i < n; i++)
        store_add(vm, st, part[i]);
    s->len = len;
    s->built = true;
    s->n_cp = n_cp;
    return jv_str(s);
}

/* ---- the buffer ---- */

/* Grow a buffer to `need` elements of this size.  It grows by a fraction of itself, so all
 * moves together cost no more than the writes. */
static void *grow(struct vm *vm, void *old, size_t *cap, size_t need, size_t size)
{
    size_t whole = vm->d->memory.size, taken = vm->d->memory.used + vm->d->buffer;
    size_t room = taken < whole ? (whole - taken) / size : 0; /* both exist during the move */
    size_t more = *cap > 0 ? *cap * 2 : 4096 / size;
    void *grown;

    if (more < need)
        more = need;
    if (more > room)
        more = *cap + *cap / 4 > need ? *cap + *cap / 4 : need;
    if (more > room)
        jv_fail(vm, ERR_BUDGET, "the template needs more than %zu bytes of memory", vm->d->max);
    jv_charge_bytes(vm, *cap * size);
    grown = malloc(more * size);
    if (grown == NULL)
        jv_fail(vm, ERR_MEMORY, "not enough memory for the text of the chat");
    if (*cap > 0)
        memcpy(grown, old, *cap * size);
    free(old);
    vm->d->buffer += (more - *cap) * size;
    *cap = more;
    return grown;
}

static void add_run(struct vm *vm, uint32_t source)
{
    if (vm->n_run > 0 && vm->run[vm->n_run - 1].source == source && vm->n_run > vm->run_base) {
        vm->run[vm->n_run - 1].len = vm->out_len;
        return;
    }
    if (vm->n_run == vm->cap_run)
        vm->run = grow(vm, vm->run, &vm->cap_run, vm->n_run + 1, sizeof vm->run[0]);
    vm->run[vm->n_run++] = (struct jinja_run){ source, vm->out_len };
}

char *jv_reserve(struct vm *vm, size_t len)
{
    if (len > vm->out_cap - vm->out_len) {
        size_t need;

        if (__builtin_add_overflow(vm->out_len, len, &need))
            need = SIZE_MAX;
        vm->out = grow(vm, vm->out, &vm->out_cap, need, 1);
    }
    return vm->out + vm->out_len;
}

void jv_write(struct vm *vm, const char *p, size_t len, uint32_t source)
{
    if (len == 0)
        return;
    jv_charge_bytes(vm, len);
    memcpy(jv_reserve(vm, len), p, len);
    vm->out_len += len;
    add_run(vm, source);
}

void jv_puts(struct vm *vm, const char *literal, uint32_t source)
{
    jv_write(vm, literal, strlen(literal), source);
}

void jv_fill(struct vm *vm, const char *p, size_t len, uint32_t source, size_t times)
{
    size_t whole;
    char *to;

    if (len == 0 || times == 0)
        return;
    if (__builtin_mul_overflow(len, times, &whole))
        jv_fail(vm, ERR_BUDGET, "a string is too long");
    jv_charge_bytes(vm, whole);
    to = jv_reserve(vm, whole);
    if (len == 1)
        memset(to, p[0], whole);
    else
        for (size_t i = 0; i < times; i++)
            memcpy(to + i * len, p, len);
    vm->out_len += whole;
    add_run(vm, source);
}

void jv_write_part(struct vm *vm, const struct str *s, size_t from, size_t to)
{
    struct piece piece;

    while (jv_piece(s, &from, to, &piece))
        jv_write(vm, piece.p, piece.len, piece.source);
}

void jv_write_str(struct vm *vm, const struct str *s)
{
    jv_write_part(vm, s, 0, s->len);
}

void jv_write_escaped(struct vm *vm, const struct str *s)
{
    static const char *const names[] = { ['&'] = "&amp;",  ['<'] = "&lt;",  ['>'] = "&gt;",
                                         ['\''] = "&#39;", ['"'] = "&#34;" };
    struct piece piece;

    for (size_t at = 0; jv_piece(s, &at, s->len, &piece);) {
        for (size_t i = 0; i < piece.len; i++) {
            unsigned char c = (unsigned char)piece.p[i];

            if (c < sizeof names / sizeof names[0] && names[c] != NULL)
                jv_puts(vm, names[c], piece.source);
            else
                jv_write(vm, piece.p + i, 1, piece.source);
        }
    }
}

void jv_write_cp(struct vm *vm, uint32_t cp, uint32_t source)
{
    char bytes[4];

    jv_write(vm, bytes, utf8_encode(cp, bytes), source);
}

struct mark jv_begin(struct vm *vm)
{
    struct mark m = { vm->out_len, vm->n_run, vm->run_base };

    vm->run_base = vm->n_run;
    return m;
}

void jv_drop(struct vm *vm, struct mark m)
{
    vm->out_len = m.len;
    vm->n_run = m.run;
    vm->run_base = m.run_base;
}

val jv_end(struct vm *vm, struct mark m)
{
    size_t len = vm->out_len - m.len, n = vm->n_run - m.run;
    struct str *s;
    char *bytes;

    if (len == 0) {
        jv_drop(vm, m);
        return jv_str(&empty);
    }
    jv_charge_bytes(vm, len);
    s = jv_take(vm, sizeof *s);
    bytes = jv_take(vm, len);
    memcpy(bytes, vm->out + m.len, len);
    *s = (struct str){ .p = bytes, .len = len, .n_cp = CP_UNKNOWN };
    if (n == 1) {
        s->source = vm->run[m.run].source;
    } else {
        struct store *st = jv_take(vm, sizeof *st);

        *st = (struct store){ .bytes = bytes, .used = len, .cap = len };
        st->seg = jv_take(vm, n * sizeof st->seg[0]);
        st->n_seg = st->cap_seg = n;
        for (size_t i = 0; i < n; i++)
            st->seg[i] =
                (struct seg){ vm->run[m.run + i].len - m.len, vm->run[m.run + i].source };
        s->store = st;
    }
    jv_drop(vm, m);
    return jv_str(s);
}

/* ---- searching ---- */

size_t jv_find(struct vm *vm, const struct str *s, size_t from, size_t to,
               const struct str *needle)
{
    const char *found;

    if (from > to || needle->len > to - from)
        return SIZE_MAX;
    if (needle->len == 0)
        return from;
    found = memmem(s->p + from, to - from, needle->p, needle->len);
    jv_charge_bytes(vm,
                    found != NULL ? (size_t)(found - s->p) - from + needle->len : to - from);
    return found != NULL ? (size_t)(found - s->p) : SIZE_MAX;
}

size_t jv_rfind(struct vm *vm, const struct str *s, size_t to, const struct str *needle)
{
    if (needle->len > to)
        return SIZE_MAX;
    for (size_t at = to - needle->len;; at--) {
        size_t same = 0;

        while (same < needle->len && s->p[at + same] == needle->p[same])
            same++;
        jv_charge(vm, 1 + same / 16);
        if (same == needle->len)
            return at;
        if (at == 0)
            return SIZE_MAX;
    }
}
