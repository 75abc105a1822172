/* The lines of a chat, as they are written: messages, queued messages, and the open answer. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/store/store_internal.h"

#define LINE_ENOUGH (STORE_MAX_LINE / 8) /* of text; escaping turns a byte into at most six */

/* Returns the offset of the next line. */
static uint64_t end_of(const struct store *s)
{
    return s->size + s->out.used;
}

void store_print_cut(struct store *s, const struct store_end *end)
{
    const struct mw_cut *cut = &end->cut;

    if (cut->n_held > 0) {
        json_print(&s->out, ",\"%s_held\":\"", cut->holds_thinking ? "thinking" : "text");
        json_inside(&s->out, end->held, cut->n_held);
        json_print(&s->out, "\"");
    }
    if (cut->n_ids == 0 || cut->n_ids > MW_CUT_IDS)
        return;
    json_print(&s->out, ",\"ids\":");
    for (size_t i = 0; i < cut->n_ids; i++)
        json_print(&s->out, "%c%u", i == 0 ? '[' : ',', cut->ids[i]);
    json_print(&s->out, "]");
}

/* Complete the open line of the answer; done is NULL if the answer continues.  end may be NULL.
 */
static void end_line(struct store *s, const char *done, const struct store_end *end)
{
    const struct record *r;

    if (!s->is_open)
        return;
    r = &s->record[s->answer - s->first];
    json_print(&s->out, "\"");
    if (done != NULL)
        json_print(&s->out, ",\"done\":\"%s\"", done);
    if (end != NULL)
        store_print_cut(s, end);
    json_print(&s->out, "}");
    s->piece[r->last].bytes = (uint32_t)(end_of(s) - s->line_at);
    json_print(&s->out, "\n");
    s->is_open = false;
}

static void close_line(struct store *s, const char *done)
{
    end_line(s, done, NULL);
}

void store_close_line(struct store *s)
{
    close_line(s, NULL);
}

static void begin_line(struct store *s, const char *role, bool continues)
{
    char stamp[32];

    store_now(stamp, false);
    json_print(&s->out, "{\"role\":\"%s\",\"time\":\"%s\"%s", role, stamp,
               continues ? ",\"continues\":true" : "");
}

/* Returns how many bytes of s[0 .. n) fit one line. */
static size_t some(const char *s, size_t n)
{
    return n <= LINE_ENOUGH ? n : utf8_start(s, LINE_ENOUGH - 4, LINE_ENOUGH);
}

/* The kind of a line with text. */
enum line_kind {
    LINE_MESSAGE,
    LINE_HELP,
    LINE_SUMMARY,
    LINE_NOTICE,
    LINE_QUEUED,
    LINE_FROM_QUEUE
};

/* Additions to the first line of a text. */
struct line_extra {
    const struct attached *attached; /* NULL: no files */
    uint32_t n_carried;              /* of LINE_SUMMARY */
};

static void print_attached(struct store *s, const struct attached *a)
{
    json_print(&s->out, "\"attached\":\"");
    json_inside(&s->out, a->label, strlen(a->label));
    json_print(&s->out, "\",\"attached_bytes\":%u,", a->bytes);
}

static void begin_text(struct store *s, enum line_kind what, enum store_kind kind,
                       bool continues, const struct line_extra *x)
{
    const struct attached *a =
        !continues && x->attached != NULL && x->attached->bytes > 0 ? x->attached : NULL;

    static const char *const roles[] = {
        [STORE_SYSTEM] = "system", [STORE_USER] = "user", [STORE_ANSWER] = "assistant"
    };

    if (what == LINE_NOTICE) {
        json_print(&s->out, "{\"notice\":");
    } else if (what == LINE_QUEUED) {
        json_print(&s->out, "{%s", continues ? "\"continues\":true," : "");
        if (a != NULL)
            print_attached(s, a);
        json_print(&s->out, "\"queued\":");
    } else {
        begin_line(s, roles[kind], continues);
        json_print(&s->out, "%s,",
                   what == LINE_HELP                       ? ",\"help\":true,\"done\":\"stop\""
                   : what == LINE_FROM_QUEUE && !continues ? ",\"queued\":true"
                                                           : "");
        if (what == LINE_SUMMARY && !continues)
            json_print(&s->out, "\"summary\":%u,", x->n_carried);
        if (a != NULL)
            print_attached(s, a);
        json_print(&s->out, "\"text\":");
    }
}

/* Add text as one line, or as several lines that continue it. */
static int add_text(struct store *s, enum line_kind what, enum store_kind kind,
                    const char *text, size_t n, const struct line_extra *x, uint32_t *item,
                    struct err *e)
{
    uint32_t number = 0;
    bool first = true;

    close_line(s, NULL);
    do {
        struct chatline l = { .is_message = what != LINE_NOTICE && what != LINE_QUEUED,
                              .is_summary = what == LINE_SUMMARY,
                              .n_carried = x->n_carried,
                              .kind = kind,
                              .is_notice = what == LINE_NOTICE,
                              .is_queued = what == LINE_QUEUED,
                              .from_queue = what == LINE_FROM_QUEUE,
                              .is_help = what == LINE_HELP,
                              .has_done = what == LINE_HELP,
                              .done = MW_DONE_STOP,
                              .continues = !first };
        uint64_t at = end_of(s);
        size_t now_n = what == LINE_NOTICE && n > 4096 ? 4096 : some(text, n);

        begin_text(s, what, kind, !first, x);
        json_string_n(&s->out, NULL, text, now_n);
        json_print(&s->out, "}");
        l.text.n = now_n;
        if (store_apply(s, &l, at, (uint32_t)(end_of(s) - at), &number, e) != 0)
            return -1;
        json_print(&s->out, "\n");
        text += now_n;
        n -= now_n;
        first = false;
    } while (n > 0 && what != LINE_NOTICE);
    if (item != NULL)
        *item = number;
    /* A chat without a question is not saved. */
    s->is_said = s->is_said || kind == STORE_USER || kind == STORE_ANSWER;
    return store_commit(s, kind == STORE_USER || what == LINE_HELP, e);
}

int store_add(struct store *s, enum store_kind kind, const char *text, size_t n, uint32_t *item,
              struct err *e)
{
    return add_text(s, kind == STORE_NOTICE ? LINE_NOTICE : LINE_MESSAGE, kind, text, n,
                    &(struct line_extra){ NULL, 0 }, item, e);
}

int store_add_user(struct store *s, const char *text, size_t n, const struct attached *a,
                   uint32_t *item, struct err *e)
{
    return add_text(s, LINE_MESSAGE, STORE_USER, text, n, &(struct line_extra){ a, 0 }, item,
                    e);
}

int store_add_summary(struct store *s, const char *text, size_t n, const struct attached *a,
                      uint32_t n_carried, struct err *e)
{
    return add_text(s, LINE_SUMMARY, STORE_USER, text, n, &(struct line_extra){ a, n_carried },
                    NULL, e);
}

int store_add_help(struct store *s, const char *text, size_t n, uint32_t *item, struct err *e)
{
    return add_text(s, LINE_HELP, STORE_ANSWER, text, n, &(struct line_extra){ NULL, 0 }, item,
                    e);
}

int store_queue(struct store *s, const char *text, size_t n, const struct attached *a,
                struct err *e)
{
    if (s->n_queue == STORE_MAX_QUEUE)
        return err_set(e, ERR_ARGUMENT, "%d messages are already queued", STORE_MAX_QUEUE);
    return add_text(s, LINE_QUEUED, STORE_USER, text, n, &(struct line_extra){ a, 0 }, NULL, e);
}

int store_add_queued(struct store *s, const char *text, size_t n, const struct attached *a,
                     uint32_t *item, struct err *e)
{
    return add_text(s, LINE_FROM_QUEUE, STORE_USER, text, n, &(struct line_extra){ a, 0 }, item,
                    e);
}

int store_unqueue(struct store *s, size_t n, struct err *e)
{
    close_line(s, NULL);
    store_drop_queued(s, n);
    json_print(&s->out, "{\"unqueued\":%zu}\n", n);
    return store_commit(s, true, e);
}

static int begin_answer(struct store *s, bool resume, struct err *e)
{
    struct record *r = resume ? store_continued(s, STORE_ANSWER) : NULL;
    bool continues = r != NULL;

    if (r == NULL)
        r = store_add_record(s, STORE_ANSWER, end_of(s), e);
    if (r == NULL || store_add_line(s, r, end_of(s), 0, e) != 0)
        return -1;
    store_take_back(r);
    s->answer = s->first + (uint32_t)(r - s->record);
    s->line_at = end_of(s);
    begin_line(s, "assistant", continues);
    s->is_open = true;
    s->in_answer = true;
    s->is_said = true;
    s->has_text = false;
    s->in_thinking = false;
    return 0;
}

int store_piece(struct store *s, const char *text, size_t n, bool is_thinking, bool resume,
                uint32_t *item, struct err *e)
{
    bool goes_on = resume || s->in_answer;
    struct store_item *i;

    while (n > 0) {
        size_t now_n = some(text, n);

        /* A line has thinking before text, and a length that can be read again. */
        if (s->is_open &&
            ((is_thinking && s->has_text) || end_of(s) - s->line_at > LINE_ENOUGH)) {
            close_line(s, NULL);
            goes_on = true;
        }
        if (!s->is_open) {
            if (begin_answer(s, goes_on, e) != 0)
                return -1;
            json_print(&s->out, ",\"%s\":\"", is_thinking ? "thinking" : "text");
        } else if (!is_thinking && s->in_thinking) {
            json_print(&s->out, "\",\"text\":\"");
        }
        s->in_thinking = is_thinking;
        s->has_text = s->has_text || !is_thinking;
        json_inside(&s->out, text, now_n);
        i = &s->record[s->answer - s->first].item;
        if (is_thinking)
            i->thinking_bytes += (uint32_t)now_n;
        else
            i->text_bytes += (uint32_t)now_n;
        text += now_n;
        n -= now_n;
    }
    if (item != NULL)
        *item = s->answer;
    return store_commit(s, false, e);
}

int store_thought(struct store *s, struct err *e)
{
    struct chatline l = {
        .is_message = true, .kind = STORE_ANSWER, .continues = true, .was_thinking = true
    };
    uint32_t item;
    uint64_t at;

    close_line(s, NULL);
    at = end_of(s);
    begin_line(s, "assistant", true);
    json_print(&s->out, ",\"was_thinking\":true}");
    if (store_apply(s, &l, at, (uint32_t)(end_of(s) - at), &item, e) != 0)
        return -1;
    json_print(&s->out, "\n");
    s->answer = item;
    s->in_answer = true; /* it may go on with this line */
    s->is_said = true;
    return store_commit(s, false, e);
}

void store_print_figures(struct store *s, const struct mw_receipt *r, uint64_t context)
{
    struct json *j = &s->out;

    json_object(j, "receipt");
    if (r->is_continuation)
        json_u64(j, "continuation", 1);
    if (r->has_stop_text)
        json_u64(j, "stop_text", 1);
    if (r->is_remote)
        json_u64(j, "remote", 1);
    if (r->is_in_pieces)
        json_u64(j, "in_pieces", 1);
    if (r->is_mapped)
        json_u64(j, "mapped", 1);
    json_u64(j, "n_prompt", r->n_prompt);
    json_u64(j, "n_reused", r->n_reused);
    json_u64(j, "n_decoded", r->n_decoded);
    if (r->attempt > 0)
        json_u64(j, "attempt", r->attempt);
    json_u64(j, "first_ns", r->first_ns);
    json_u64(j, "prefill_ns", r->prefill_ns);
    json_u64(j, "decode_ns", r->decode_ns);
    json_u64(j, "bytes_read", r->bytes_read);
    json_u64(j, "stall_ns", r->stall_ns);
    json_u64(j, "peak_charged", r->peak_charged);
    if (r->peak_resident > 0)
        json_u64(j, "peak_resident", r->peak_resident);
    json_u64(j, "context", context);
    json_end(j);
}

void store_print_receipt(struct store *s, const struct mw_receipt *r, uint64_t context)
{
    json_object(&s->out, NULL);
    store_print_figures(s, r, context);
    json_end(&s->out);
    json_line(&s->out);
}

/* End the line of the answer, which may have no text. */
static int finish_answer(struct store *s, enum mw_done done, const struct store_end *end,
                         struct err *e)
{
    if (!s->is_open) {
        if (begin_answer(s, s->in_answer || (end != NULL && end->resume), e) != 0)
            return -1;
        json_print(&s->out, ",\"text\":\"");
    }
    end_line(s, chatline_done_name(done), end);
    s->in_answer = false;
    s->record[s->answer - s->first].item.done = done;
    if (end != NULL)
        store_hold(&s->record[s->answer - s->first], end->cut.n_held, end->cut.holds_thinking);
    return 0;
}

int store_done(struct store *s, const struct mw_receipt *r, uint64_t context,
               const struct store_end *end, struct err *e)
{
    struct chatline l = { .receipt = *r, .context = context };

    if (finish_answer(s, r->done, end, e) != 0)
        return -1;
    store_print_receipt(s, r, context);
    store_apply_receipt(s, &l);
    return store_commit(s, true, e);
}

int store_done_bare(struct store *s, enum mw_done done, const struct store_end *end,
                    struct err *e)
{
    return finish_answer(s, done, end, e) != 0 ? -1 : store_commit(s, true, e);
}

int store_set_settings(struct store *s, const char *text, struct err *e)
{
    close_line(s, NULL);
    snprintf(s->settings, sizeof s->settings, "%s", text);
    store_print_settings(s);
    return store_commit(s, true, e);
}

int store_set_model(struct store *s, const char *file, const char *name, struct err *e)
{
    close_line(s, NULL);
    snprintf(s->model.file, sizeof s->model.file, "%s", file);
    snprintf(s->model.name, sizeof s->model.name, "%s", name);
    store_print_model(s);
    return store_commit(s, true, e);
}

/* Read the system message if it is not before message n.  Returns false if there is no such one,
 * or it is gone. */
static bool read_later_system(const struct store *s, size_t n, struct store_text *out)
{
    struct err ignored = ERR_INIT;
    uint32_t system = store_system(s), item;

    return system != STORE_NO_ITEM && n < store_messages(s) &&
           store_item_of(s, (uint32_t)n, &item, &ignored) == 0 && system >= item &&
           store_text(s, system, out, &ignored) == 0;
}

/* The lines of a system message that is removed are written again. */
int store_rewind(struct store *s, size_t n, struct err *e)
{
    struct store_text system;
    bool is_later;
    int rc = 0;

    close_line(s, chatline_done_name(MW_DONE_CANCELLED));
    s->in_answer = false;
    is_later = read_later_system(s, n, &system);
    if (store_keep_messages(s, n, e) != 0)
        rc = -1;
    else
        json_print(&s->out, "{\"rewind\":%zu}\n", n);
    if (is_later && rc == 0)
        rc = add_text(s, LINE_MESSAGE, STORE_SYSTEM, system.text, system.len,
                      &(struct line_extra){ NULL, 0 }, NULL, e);
    if (is_later)
        store_text_free(&system);
    return rc != 0 ? -1 : store_commit(s, true, e);
}

int store_finish(struct store *s, struct err *e)
{
    if (s->is_open)
        close_line(s, chatline_done_name(MW_DONE_CANCELLED));
    return store_sync(s, e);
}
