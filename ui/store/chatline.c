/*
 * Parses with yajl, in bounded memory: MAX_DEPTH limits nesting, and the caller limits the line
 * and so its strings.  Unknown keys are skipped with their values, so that later versions can
 * add keys.
 */
#include "config.h"

#include "ui/store/chatline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "engine/base/encoding.h"
#include "engine/base/json_text_end.h"

#define MAX_DEPTH 16

static const char *const done_names[] = {
    [MW_DONE_STOP] = "stop",           [MW_DONE_LENGTH] = "length",
    [MW_DONE_CANCELLED] = "cancelled", [MW_DONE_CONTEXT] = "context",
    [MW_DONE_ERROR] = "error",
};

enum key {
    KEY_OTHER,
    KEY_MEMWALL,
    KEY_VERSION,
    KEY_CREATED,
    KEY_MODEL,
    KEY_ROLE,
    KEY_TIME,
    KEY_TEXT,
    KEY_THINKING,
    KEY_DONE,
    KEY_CONTINUES,
    KEY_WAS_THINKING,
    KEY_NOTICE,
    KEY_REWIND,
    KEY_RECEIPT,
    KEY_QUEUED,
    KEY_UNQUEUED,
    KEY_ATTACHED,
    KEY_ATTACHED_BYTES,
    KEY_TEXT_HELD,
    KEY_THINKING_HELD,
    KEY_IDS,
    KEY_SETTINGS,
    KEY_HELP,
    KEY_SUMMARY,
    KEY_OTHER_ANSWER,
    KEY_NUMBER,
    KEY_CHOSEN,
    KEY_MODEL_FILE,
    KEY_MODEL_NAME,
};

/* The type of a value, or several. */
enum type { STRING = 1, NUMBER = 2, BOOL = 4, OBJECT = 8, LIST = 16, NONE = 32, ANY = 63 };

static const struct {
    const char *name; /* "": not known */
    unsigned types;
} keys[] = {
    [KEY_OTHER] = { "", ANY },
    [KEY_MEMWALL] = { "memwall", STRING },
    [KEY_VERSION] = { "version", NUMBER },
    [KEY_CREATED] = { "created", STRING },
    [KEY_MODEL] = { "model", STRING },
    [KEY_ROLE] = { "role", STRING },
    [KEY_TIME] = { "time", STRING },
    [KEY_TEXT] = { "text", STRING },
    [KEY_THINKING] = { "thinking", STRING },
    [KEY_DONE] = { "done", STRING },
    [KEY_CONTINUES] = { "continues", BOOL },
    [KEY_WAS_THINKING] = { "was_thinking", BOOL },
    [KEY_NOTICE] = { "notice", STRING },
    [KEY_REWIND] = { "rewind", NUMBER },
    [KEY_RECEIPT] = { "receipt", OBJECT },
    [KEY_QUEUED] = { "queued", STRING | BOOL },
    [KEY_UNQUEUED] = { "unqueued", NUMBER },
    [KEY_ATTACHED] = { "attached", STRING },
    [KEY_ATTACHED_BYTES] = { "attached_bytes", NUMBER },
    [KEY_TEXT_HELD] = { "text_held", STRING },
    [KEY_THINKING_HELD] = { "thinking_held", STRING },
    [KEY_IDS] = { "ids", LIST },
    [KEY_SETTINGS] = { "settings", STRING },
    [KEY_HELP] = { "help", BOOL },
    [KEY_SUMMARY] = { "summary", NUMBER },
    [KEY_OTHER_ANSWER] = { "other_answer", STRING },
    [KEY_NUMBER] = { "number", NUMBER },
    [KEY_CHOSEN] = { "chosen_answer", NUMBER },
    [KEY_MODEL_FILE] = { "model_file", STRING },
    [KEY_MODEL_NAME] = { "model_name", STRING },
};

struct chatline_reader {
    yajl_handle yajl;
    struct chatline line;
    bool keep, keeps_ids, has_begun, is_object;
    unsigned depth;
    enum key key;       /* at depth 1 */
    uint32_t seen;      /* a bit for each key */
    char inner[24];     /* key in the receipt, at depth 2 */
    const char *broken; /* why a callback stopped it */
};

const char *chatline_done_name(enum mw_done d)
{
    return (size_t)d < sizeof done_names / sizeof done_names[0] ? done_names[d] : "error";
}

static bool is(const unsigned char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static void copy(char *dst, size_t size, const unsigned char *s, size_t n)
{
    snprintf(dst, size, "%.*s", (int)(n < size ? n : size), (const char *)s);
}

static int add(struct chatline_reader *r, struct text_of *t, const unsigned char *s, size_t n)
{
    if (n > UINT32_MAX / 2 - t->n) {
        r->broken = "has a text that is too long";
        return 0;
    }
    if (r->keep && t->n + n + 1 > t->room) {
        size_t room = t->n + n + 1;
        char *more = realloc(t->s, room);

        if (more == NULL) {
            r->broken = "does not fit the memory";
            return 0;
        }
        t->s = more;
        t->room = room;
    }
    if (r->keep) {
        memcpy(t->s + t->n, s, n);
        t->s[t->n + n] = '\0';
    }
    t->n += n;
    return 1;
}

/* ---- keys that are wrong ---- */

static bool is_receipt_key(const char *name);

/* Returns the known key whose value begins here; "": none. */
static const char *known_key(const struct chatline_reader *r)
{
    if (r->depth == 2 && r->key == KEY_RECEIPT && is_receipt_key(r->inner))
        return r->inner;
    return r->depth == 1 || (r->depth == 2 && r->key == KEY_IDS) ? keys[r->key].name : "";
}

/* Only the first fault of a line is kept. */
static void wrong_key(struct chatline_reader *r, const char *key, const char *fault)
{
    if (r->line.wrong[0] == '\0' && key[0] != '\0')
        snprintf(r->line.wrong, sizeof r->line.wrong, "\"%s\" %s", key, fault);
}

static void unknown_value(struct chatline_reader *r)
{
    wrong_key(r, known_key(r), "has an unknown value");
}

/* A value of this type begins. */
static void check_type(struct chatline_reader *r, enum type type)
{
    if (((r->depth == 1 ? keys[r->key].types : NUMBER) & type) != 0)
        return;
    wrong_key(r, known_key(r), "has a value of the wrong type");
    /* Nothing else is ever written. */
    r->line.continues |= r->depth == 1 && r->key == KEY_CONTINUES;
    r->line.was_thinking |= r->depth == 1 && r->key == KEY_WAS_THINKING;
}

static bool has_seen(const struct chatline_reader *r, enum key key)
{
    return (r->seen >> key & 1) != 0;
}

/* Look for keys without which the others say nothing. */
static void check_missing(struct chatline_reader *r)
{
    struct chatline *l = &r->line;
    bool has_head =
        has_seen(r, KEY_VERSION) || has_seen(r, KEY_CREATED) || has_seen(r, KEY_MODEL);
    bool has_text = has_seen(r, KEY_TEXT) || has_seen(r, KEY_THINKING);
    enum key missing = KEY_OTHER;

    if (l->is_head && !has_seen(r, KEY_VERSION))
        missing = KEY_VERSION;
    else if (!has_seen(r, KEY_MEMWALL) && has_head)
        missing = KEY_MEMWALL;
    else if (l->is_message && l->kind != STORE_ANSWER && !has_seen(r, KEY_TEXT))
        missing = KEY_TEXT;
    else if ((has_text || has_seen(r, KEY_WAS_THINKING) ||
              (has_seen(r, KEY_QUEUED) && !l->is_queued)) &&
             !has_seen(r, KEY_ROLE))
        missing = KEY_ROLE;
    if (l->is_message && l->is_queued) /* it has the text of both */
        wrong_key(r, "queued", "has a value of the wrong type");
    l->has_known_key = r->seen != 0;
    l->has_time = has_seen(r, KEY_TIME);
    /* A text that can be read is shown, even if its role cannot. */
    l->is_notice |= has_text && !l->is_message && !l->is_queued && !l->is_other;
    wrong_key(r, keys[missing].name, "is missing");
}

/* ---- values ---- */

static void role(struct chatline_reader *r, const unsigned char *s, size_t n)
{
    struct chatline *l = &r->line;
    static const struct {
        const char *name;
        enum store_kind kind;
    } roles[] = { { "system", STORE_SYSTEM },
                  { "user", STORE_USER },
                  { "assistant", STORE_ANSWER } };

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (is(s, n, roles[i].name)) {
            l->is_message = true;
            l->kind = roles[i].kind;
        }
    if (!l->is_message)
        unknown_value(r);
}

static void done(struct chatline_reader *r, const unsigned char *s, size_t n)
{
    struct chatline *l = &r->line;

    for (size_t i = 0; i < sizeof done_names / sizeof done_names[0]; i++)
        if (is(s, n, done_names[i])) {
            l->has_done = true;
            l->done = (enum mw_done)i;
        }
    if (!l->has_done)
        unknown_value(r);
}

static int on_string(void *ctx, const unsigned char *s, size_t n)
{
    struct chatline_reader *r = ctx;
    struct chatline *l = &r->line;

    check_type(r, STRING);
    if (r->depth != 1)
        return 1;
    switch (r->key) {
    case KEY_MEMWALL:
        l->is_head = is(s, n, "chat");
        l->is_other_file = !l->is_head;
        break;
    case KEY_CREATED: copy(l->created, sizeof l->created, s, n); break;
    case KEY_MODEL: copy(l->model, sizeof l->model, s, n); break;
    case KEY_ROLE: role(r, s, n); break;
    case KEY_DONE: done(r, s, n); break;
    case KEY_TEXT: return add(r, &l->text, s, n);
    case KEY_THINKING: return add(r, &l->thinking, s, n);
    case KEY_NOTICE: l->is_notice = true; return add(r, &l->text, s, n);
    case KEY_QUEUED: l->is_queued = true; return add(r, &l->text, s, n);
    case KEY_OTHER_ANSWER: l->is_other = true; return add(r, &l->text, s, n);
    case KEY_SETTINGS:
        l->is_settings = n < sizeof l->settings;
        if (!l->is_settings)
            unknown_value(r);
        copy(l->settings, sizeof l->settings, s, l->is_settings ? n : 0);
        break;
    case KEY_MODEL_FILE:
        l->is_model = n < sizeof l->model_file;
        if (!l->is_model)
            unknown_value(r);
        copy(l->model_file, sizeof l->model_file, s, l->is_model ? n : 0);
        break;
    case KEY_MODEL_NAME: copy(l->model_name, sizeof l->model_name, s, n); break;
    case KEY_ATTACHED: copy(l->attached.label, sizeof l->attached.label, s, n); break;
    case KEY_THINKING_HELD: l->holds_thinking = true; return add(r, &l->held, s, n);
    case KEY_TEXT_HELD: return add(r, &l->held, s, n);
    case KEY_TIME:
    case KEY_IDS:
    case KEY_HELP:
    case KEY_ATTACHED_BYTES:
    case KEY_UNQUEUED:
    case KEY_VERSION:
    case KEY_CONTINUES:
    case KEY_WAS_THINKING:
    case KEY_REWIND:
    case KEY_RECEIPT:
    case KEY_SUMMARY:
    case KEY_NUMBER:
    case KEY_CHOSEN:
    case KEY_OTHER: break;
    }
    return 1;
}

/* Returns whether name is a number of a receipt, and sets it. */
static bool receipt_number(struct chatline *l, const char *name, long long v)
{
    struct mw_receipt *p = &l->receipt;
    uint64_t n = v < 0 ? 0 : (uint64_t)v;
    uint32_t small = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    const struct {
        const char *name;
        uint64_t *wide;
        uint32_t *narrow;
        bool *flag;
    } rows[] = {
        { "continuation", .flag = &p->is_continuation },
        { "stop_text", .flag = &p->has_stop_text },
        { "remote", .flag = &p->is_remote },
        { "in_pieces", .flag = &p->is_in_pieces },
        { "mapped", .flag = &p->is_mapped },
        { "n_prompt", .narrow = &p->n_prompt },
        { "n_reused", .narrow = &p->n_reused },
        { "n_decoded", .narrow = &p->n_decoded },
        { "attempt", .narrow = &p->attempt },
        { "first_ns", .wide = &p->first_ns },
        { "prefill_ns", .wide = &p->prefill_ns },
        { "decode_ns", .wide = &p->decode_ns },
        { "bytes_read", .wide = &p->bytes_read },
        { "stall_ns", .wide = &p->stall_ns },
        { "peak_charged", .wide = &p->peak_charged },
        { "peak_resident", .wide = &p->peak_resident },
        { "context", .wide = &l->context },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        if (rows[i].wide != NULL)
            *rows[i].wide = n;
        else if (rows[i].flag != NULL)
            *rows[i].flag = n != 0;
        else
            *rows[i].narrow = small;
        return true;
    }
    return false;
}

static bool is_receipt_key(const char *name)
{
    struct chatline unused = { 0 };

    return receipt_number(&unused, name, 0);
}

/* A list with ids beyond the limit, or with ids that no vocabulary has, is not used. */
static int add_id(struct chatline_reader *r, long long v)
{
    struct chatline *l = &r->line;

    l->n_ids++;
    if (!r->keeps_ids || l->n_ids > MW_CUT_IDS)
        return 1;
    if (l->n_ids > l->room_ids) {
        size_t room = l->room_ids * 2 + 256;
        uint32_t *more = realloc(l->ids, room * sizeof *more);

        if (more == NULL) {
            r->broken = "does not fit the memory";
            return 0;
        }
        l->ids = more;
        l->room_ids = room;
    }
    l->ids[l->n_ids - 1] = v < 0 || v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
    return 1;
}

static int whole_number(struct chatline_reader *r, long long v)
{
    struct chatline *l = &r->line;
    bool is_small = v >= 0 && v <= UINT32_MAX;

    if (v < 0 || (v == 0 && r->key == KEY_UNQUEUED) ||
        (!is_small &&
         (r->key == KEY_IDS || r->key == KEY_ATTACHED_BYTES || r->key == KEY_SUMMARY)))
        unknown_value(r);
    if (r->depth == 2 && r->key == KEY_IDS)
        return add_id(r, v);
    if (r->depth == 2 && r->key == KEY_RECEIPT)
        receipt_number(l, r->inner, v);
    if (r->depth != 1)
        return 1;
    if (r->key == KEY_VERSION)
        l->version = v;
    if (r->key == KEY_REWIND) {
        l->is_rewind = v >= 0;
        l->rewind = v;
    }
    if (r->key == KEY_UNQUEUED) {
        l->is_unqueued = v > 0;
        l->unqueued = v;
    }
    if ((r->key == KEY_NUMBER || r->key == KEY_CHOSEN) && is_small)
        l->number = (uint32_t)v;
    l->is_chosen |= r->key == KEY_CHOSEN && is_small;
    if (r->key == KEY_SUMMARY && is_small) {
        l->is_summary = true;
        l->n_carried = (uint32_t)v;
    }
    if (r->key == KEY_ATTACHED_BYTES && is_small)
        l->attached.bytes = (uint32_t)v;
    return 1;
}

/* yajl itself refuses a line with a number beyond long long; here only the key is wrong. */
static int on_number(void *ctx, const char *s, size_t n)
{
    struct chatline_reader *r = ctx;
    char digits[24], *end;
    long long v;

    check_type(r, NUMBER);
    snprintf(digits, sizeof digits, "%.*s", (int)(n < sizeof digits ? n : sizeof digits), s);
    errno = 0;
    v = strtoll(digits, &end, 10);
    if (n < sizeof digits && *end == '\0' && errno == 0)
        return whole_number(r, v);
    unknown_value(r);
    return 1;
}

static int on_null(void *ctx)
{
    check_type(ctx, NONE);
    return 1;
}

static int on_bool(void *ctx, int v)
{
    struct chatline_reader *r = ctx;

    check_type(r, BOOL);
    if (r->depth == 1 && r->key == KEY_CONTINUES)
        r->line.continues = v != 0;
    if (r->depth == 1 && r->key == KEY_WAS_THINKING)
        r->line.was_thinking = v != 0;
    if (r->depth == 1 && r->key == KEY_QUEUED)
        r->line.from_queue = v != 0;
    if (r->depth == 1 && r->key == KEY_HELP)
        r->line.is_help = v != 0;
    return 1;
}

static int on_key(void *ctx, const unsigned char *s, size_t n)
{
    struct chatline_reader *r = ctx;

    if (r->depth == 2)
        copy(r->inner, sizeof r->inner, s, n);
    if (r->depth != 1)
        return 1;
    r->key = KEY_OTHER;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (is(s, n, keys[i].name))
            r->key = (enum key)i;
    if (r->key != KEY_OTHER)
        r->seen |= 1u << r->key;
    return 1;
}

static int enter(void *ctx)
{
    struct chatline_reader *r = ctx;

    if (++r->depth > MAX_DEPTH) {
        r->broken = "is nested too deeply";
        return 0;
    }
    r->inner[0] = '\0';
    return 1;
}

static int on_object(void *ctx)
{
    struct chatline_reader *r = ctx;

    r->is_object |= r->depth == 0;
    check_type(r, OBJECT);
    r->line.is_receipt |= r->depth == 1 && r->key == KEY_RECEIPT;
    return enter(ctx);
}

static int on_array(void *ctx)
{
    struct chatline_reader *r = ctx;

    if (r->depth == 0) {
        r->broken = "is not an object";
        return 0;
    }
    check_type(r, LIST);
    return enter(ctx);
}

static int leave(void *ctx)
{
    struct chatline_reader *r = ctx;

    r->depth--;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_key,
    .yajl_end_map = leave,
    .yajl_start_array = on_array,
    .yajl_end_array = leave,
};

struct chatline_reader *chatline_begin(bool keep)
{
    struct chatline_reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->keep = keep;
    r->yajl = yajl_alloc(&callbacks, NULL, r);
    if (r->yajl == NULL) {
        free(r);
        return NULL;
    }
    return r;
}

void chatline_keep_ids(struct chatline_reader *r)
{
    r->keeps_ids = true;
}

void chatline_free(struct chatline *l)
{
    free(l->ids);
    free(l->held.s);
    free(l->text.s);
    free(l->thinking.s);
    *l = (struct chatline){ 0 };
}

void chatline_drop(struct chatline_reader *r)
{
    if (r == NULL)
        return;
    yajl_free(r->yajl);
    chatline_free(&r->line);
    free(r);
}

static int wrong(const struct chatline_reader *r, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s", r->broken != NULL ? r->broken : "is not valid JSON");
}

int chatline_feed(struct chatline_reader *r, const char *s, size_t n, struct err *e)
{
    int mark = r->has_begun ? 0 : encoding_mark(s, n, e);

    r->has_begun |= n > 0;
    if (mark < 0)
        return -1;
    if (yajl_parse(r->yajl, (const unsigned char *)s + mark, n - (size_t)mark) !=
        yajl_status_ok)
        return wrong(r, e);
    return 0;
}

int chatline_end(struct chatline_reader *r, struct chatline *out, struct err *e)
{
    int failed = json_text_end(r->yajl) != yajl_status_ok ? wrong(r, e) : 0;

    if (failed == 0 && !r->is_object)
        failed = err_set(e, ERR_FORMAT, "is not an object");
    check_missing(r);
    *out = r->line;
    if (failed != 0) {
        out->text = out->thinking = out->held = (struct text_of){ 0 };
        out->ids = NULL;
        out->n_ids = out->room_ids = 0;
    } else {
        r->line = (struct chatline){ 0 };
    }
    chatline_drop(r);
    return failed;
}

/* ---- lines that end too early ---- */

/* State at the end of an incomplete line. */
struct stand {
    bool in_string, is_value; /* the last string is (or was) a value, not a key */
    size_t whole;             /* in a string: where its last complete character ended */
    unsigned depth;
    size_t comma; /* position of the last one at depth 1; 0: none */
    char last;    /* the last character outside strings that is not blank */
};

/* Returns the bytes of the character of a string at s[0 .. n); more than n: it is cut. */
static size_t character_bytes(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];

    if (c == '\\')
        return n > 1 && s[1] == 'u' ? 6 : 2;
    return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
}

/* Is it \ud800 to \udbff, the first half of a surrogate pair? */
static bool is_first_half(const char *s, size_t bytes)
{
    return bytes == 6 && (s[2] | 0x20) == 'd' && memchr("89abAB", s[3], 6) != NULL;
}

/*
 * The state at a place depends only on the bytes before it, so a line that is cut at "whole"
 * has the same "whole" when it is read again.
 */
static struct stand look(const char *s, size_t n)
{
    struct stand at = { 0 };

    for (size_t i = 0, bytes = 1; i < n; i += bytes) {
        bytes = 1;
        if (at.in_string && s[i] != '"') {
            bytes = character_bytes(s + i, n - i);
            if (bytes <= n - i && !is_first_half(s + i, bytes))
                at.whole = i + bytes;
            continue;
        }
        switch (s[i]) {
        case '"':
            at.in_string = !at.in_string;
            at.whole = i + 1;
            if (at.in_string)
                at.is_value = at.last == ':';
            at.last = at.in_string ? at.last : '"';
            break;
        case '{':
        case '[': at.depth++; break;
        case '}':
        case ']': at.depth -= at.depth > 0; break;
        case ',': at.comma = at.depth == 1 ? i : at.comma; break;
        default: break;
        }
        if ((unsigned char)s[i] > ' ' && s[i] != '"')
            at.last = s[i];
    }
    return at;
}

bool chatline_repair(const char *s, size_t n, size_t *keep, const char **more)
{
    struct stand at = look(s, n);

    if (at.depth != 1 && !(at.depth > 1 && at.comma > 0))
        return false;
    if (at.depth == 1 && at.in_string && at.is_value) {
        *keep = at.whole;
        *more = "\"}";
    } else if (at.depth == 1 && !at.in_string && at.is_value && at.last == '"') {
        *keep = n;
        *more = "}";
    } else if (at.comma > 0) {
        *keep = at.comma;
        *more = "}";
    } else {
        return false;
    }
    return true;
}
