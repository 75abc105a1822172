#include "config.h"

#include "ui/talk/saving.h"

#include <sys/stat.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "ui/options/options.h"
#include "ui/ui.h"
#include "ui/words/quote.h"

static_assert(UI_STORE_BYTES >= 2 * STORE_MEMORY_BYTES, "a buffer that doubles");

#define SYSTEM_BYTES STORE_MEMORY_BYTES /* of a chat file; longer messages are not read */
#define RETRY_NS ((uint64_t)5 * 1000 * 1000 * 1000)

void saving_folder(const struct saving *s, char *buf, size_t n)
{
    snprintf(buf, n, "%s/chats", s->o->paths.data_dir);
}

/* Write the name of a chat in the folder of all chats.  False: path is not there. */
static bool own_name(const struct saving *s, const char *path, char *buf, size_t n)
{
    size_t len = strlen(path), suffix = strlen(STORE_SUFFIX), in;
    char dir[4096];

    saving_folder(s, dir, sizeof dir);
    in = strlen(dir);
    return len > in + 1 + suffix && strncmp(path, dir, in) == 0 && path[in] == '/' &&
           strchr(path + in + 1, '/') == NULL &&
           strcmp(path + len - suffix, STORE_SUFFIX) == 0 &&
           (size_t)snprintf(buf, n, "%.*s", (int)(len - in - 1 - suffix), path + in + 1) < n;
}

const char *saving_path(const struct saving *s)
{
    return s->store == NULL ? "" : store_path(s->store);
}

/* ---- the KV file of a chat ---- */

/* The folder of KV files, whether or not this run writes some. */
static bool kv_folder(const struct saving *s, char *buf, size_t n)
{
    const char *cache = s->o->options->chat.engine.cache_folder;

    return cache != NULL && (size_t)snprintf(buf, n, "%s/kv", cache) < n;
}

bool saving_kv_folder(const struct saving *s, char *buf, size_t n)
{
    return !s->o->options->no_save && s->o->options->kv_space != OPTIONS_NO_SPACE &&
           kv_folder(s, buf, n);
}

/* A chat in another folder has a name that no chat in the folder can have. */
bool saving_kv_path(const struct saving *s, const char *chat_path, char *buf, size_t n)
{
    char folder[KV_PATH_BYTES], name[DIGEST_HEX + 8], digest[DIGEST_HEX], *real;

    if (chat_path[0] == '\0' || !saving_kv_folder(s, folder, sizeof folder))
        return false;
    if (own_name(s, chat_path, name, sizeof name))
        return (size_t)snprintf(buf, n, "%s/%s" MW_KV_SUFFIX, folder, name) < n;
    real = realpath(chat_path, NULL);
    if (real == NULL)
        return false;
    digest_sha256(real, strlen(real), digest);
    free(real);
    return (size_t)snprintf(buf, n, "%s/.%.32s" MW_KV_SUFFIX, folder, digest) < n;
}

void saving_kv_moved(const struct saving *s, const char *old, const char *name)
{
    char folder[KV_PATH_BYTES], from[KV_PATH_BYTES + 100], to[KV_PATH_BYTES + 100];

    if (!kv_folder(s, folder, sizeof folder)) /* an earlier run may have written the file */
        return;
    snprintf(from, sizeof from, "%s/%.80s" MW_KV_SUFFIX, folder, old);
    if (name == NULL) { /* a person deletes the chat: also while a process uses the file */
        unlink(from);
        return;
    }
    snprintf(to, sizeof to, "%s/%.80s" MW_KV_SUFFIX, folder, name);
    (void)!rename(from, to);
}

/* Append the options of a chat that a later run would choose again otherwise. */
static void add_options(const struct mw_options *o, char *buf, size_t n)
{
    struct mw_options usual;
    size_t used = strlen(buf);
    char size[24];

    mw_options_default(&usual);
    if (o->memory_bytes > 0 && used < n)
        used += (size_t)snprintf(buf + used, n - used, " --memory %s",
                                 units_option(size, sizeof size, o->memory_bytes));
    if (o->n_ctx > 0 && used < n)
        used += (size_t)snprintf(buf + used, n - used, " --ctx %u", o->n_ctx);
    if (o->kv_k == o->kv_v && o->kv_k != usual.kv_k && used < n)
        snprintf(buf + used, n - used, " --kv %s", mw_kv_name(o->kv_k));
    else if (o->kv_k != o->kv_v && used < n)
        snprintf(buf + used, n - used, " --kv-k %s --kv-v %s", mw_kv_name(o->kv_k),
                 mw_kv_name(o->kv_v));
}

static void add_server(const char *url, char *buf, size_t n)
{
    size_t used = strlen(buf);
    char word[600];

    quote_shell(url, word, sizeof word);
    snprintf(buf + used, n - used, " --server %s", word);
}

void saving_resume(const struct saving *s, const char *path, const struct mw_options *o,
                   char *buf, size_t n)
{
    char name[4400], word[4800];

    if (!own_name(s, path, name, sizeof name))
        snprintf(name, sizeof name, "%s", path);
    quote_shell(name, word, sizeof word);
    snprintf(buf, n, "memwall --open %s", word);
    if (s->o->options->server != NULL && strlen(buf) < n)
        add_server(s->o->options->server, buf, n);
    else if (s->store == NULL || store_settings(s->store)[0] == '\0') /* else they come back */
        add_options(o, buf, n);
}

bool saving_is_file(const struct saving *s, const char *path)
{
    const char *saved = saving_path(s);
    struct stat own, st;

    return saved[0] != '\0' && stat(saved, &own) == 0 && stat(path, &st) == 0 &&
           own.st_dev == st.st_dev && own.st_ino == st.st_ino;
}

int saving_begin(struct saving *s, const char *model, struct err *e)
{
    char dir[4096];

    saving_folder(s, dir, sizeof dir);
    saving_close(s);
    s->said_gone = false;
    s->is_new = true;
    return store_new(&s->store, s->o->options->no_save ? NULL : dir, model, e);
}

/* Add a line to s->opened; those that do not fit are left out. */
__attribute__((format(printf, 2, 3))) static void note_opened(struct saving *s, const char *fmt,
                                                              ...)
{
    size_t used = strlen(s->opened), room = sizeof s->opened - used;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(s->opened + used, room, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room)
        s->opened[used] = '\0';
}

static void note_passed(void *ctx, const char *name, const struct err *why)
{
    struct err e = *why;
    char text[300];

    e.file[0] = '\0'; /* its name is enough */
    err_text(&e, text, sizeof text);
    note_opened(ctx, "passed over the chat \"%s\", which cannot be read: %s\n", name, text);
}

static void note_damage(struct saving *s, const struct store *opened)
{
    uint64_t line;
    const char *why;
    uint32_t n = store_damage(opened, &line, &why);

    if (n == 1)
        note_opened(s,
                    "line %llu of the chat file is damaged: %s; only what can be read of it is "
                    "shown, and the line stays in %s\n",
                    (unsigned long long)line, why, store_path(opened));
    else if (n > 1)
        note_opened(s,
                    "%u lines of the chat file are damaged, from line %llu on: %s; only what "
                    "can be read of them is shown, and the lines stay in %s\n",
                    n, (unsigned long long)line, why, store_path(opened));
}

int saving_open(struct saving *s, const char *name, struct store **out, struct err *e)
{
    char dir[4096], path[4400];
    int rc;

    saving_folder(s, dir, sizeof dir);
    s->opened[0] = '\0';
    if (name[0] == '\0')
        rc = store_open_newest(out, dir, note_passed, s, e);
    else if (store_find(dir, name, path, sizeof path, e) != 0)
        rc = -1;
    else if ((rc = store_open(out, path, e)) != 0)
        store_explain(path, e);
    if (rc == 0)
        note_damage(s, *out);
    return rc;
}

void saving_say_opened(struct saving *s)
{
    for (char *at = s->opened, *line; (line = strsep(&at, "\n")) != NULL;)
        if (line[0] != '\0')
            front_say(s->front, SAY_ERROR, "%s", line);
    s->opened[0] = '\0';
}

void saving_adopt(struct saving *s, struct store *opened)
{
    saving_close(s);
    s->store = opened;
    s->is_new = false;
}

/* Has the chat nothing that a person could want back?  Its messages were taken back into the
 * input line before they were answered.  An answer that is taken back stays in the file. */
static bool is_empty(const struct saving *s)
{
    return s->is_new && s->store != NULL && store_messages(s->store) == 0 &&
           store_queue_count(s->store) == 0;
}

void saving_close(struct saving *s)
{
    char path[4400] = "";

    if (is_empty(s))
        snprintf(path, sizeof path, "%s", saving_path(s));
    store_close(s->store);
    if (path[0] != '\0')
        unlink(path);
    s->store = NULL;
    s->state = SAVING_WORKS;
}

/* ---- writes that fail ---- */

/* The store had to write a new file, or forget text that has no file. */
static void report_losses(struct saving *s)
{
    uint32_t n_lost;

    if (store_take_moved(s->store, &n_lost)) {
        front_say(s->front, SAY_ERROR,
                  "another program removed or changed the file of this chat; the chat is "
                  "written again, to %s",
                  store_path(s->store));
        if (n_lost > 0)
            front_say(s->front, SAY_ERROR,
                      "the text of %u earlier messages was lost with the old file", n_lost);
    }
    if (!s->said_gone && store_oldest(s->store) > 0) {
        s->said_gone = true;
        front_say(
            s->front, SAY_NOTICE,
            "this chat is not saved and has become long: only about %zu MiB of its newest "
            "text stay in memory",
            STORE_MEMORY_BYTES >> 20);
    }
}

void saving_noted(struct saving *s, int result, const struct err *e)
{
    report_losses(s);
    if (result == 0) {
        if (s->state != SAVING_WORKS)
            front_say(s->front, SAY_NOTICE, "saving has resumed: all of the chat is in %s",
                      store_path(s->store));
        s->state = SAVING_WORKS;
        return;
    }
    err_text(e, s->why, sizeof s->why);
    s->tried_ns = clock_ns();
    if (s->state != SAVING_WORKS)
        return;
    s->state = SAVING_SUSPENDED;
    front_say(s->front, SAY_ERROR,
              "saving is suspended: %s. The chat goes on, and saving resumes when it can; "
              "/save FILE writes the chat somewhere else",
              s->why);
}

bool saving_retry(struct saving *s)
{
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_sync(s->store, &e), &e);
    return s->state == SAVING_WORKS;
}

void saving_tick(struct saving *s)
{
    if (saving_wait(s) == 0)
        saving_retry(s);
}

uint64_t saving_wait(const struct saving *s)
{
    uint64_t past;

    if (s->state == SAVING_WORKS)
        return UINT64_MAX;
    past = clock_ns() - s->tried_ns;
    return past >= RETRY_NS ? 0 : RETRY_NS - past;
}

bool saving_has_room(struct saving *s)
{
    struct err e = ERR_INIT;

    if (s->store == NULL || store_check_room(s->store, &e) == 0 || saving_retry(s))
        return true;
    front_say(s->front, SAY_ERROR,
              "%s, and saving fails: %s. Free disk space, or use /save FILE to write the chat "
              "to another file",
              e.what, s->why);
    return false;
}

bool saving_may_leave(struct saving *s)
{
    if (saving_retry(s) || s->state == SAVING_GIVEN_UP)
        return true;
    s->state = SAVING_GIVEN_UP;
    front_say(s->front, SAY_ERROR,
              "not all of the chat is saved: %s. /save FILE writes it somewhere else; leave "
              "again to leave without it",
              s->why);
    return false;
}

int saving_finish(struct saving *s, char *path, size_t n, struct err *e)
{
    int rc = s->store == NULL ? 0 : store_finish(s->store, e);

    snprintf(path, n, "%s", is_empty(s) ? "" : saving_path(s));
    if (rc != 0) {
        char why[300];

        err_text(e, why, sizeof why);
        *e = (struct err)ERR_INIT;
        return err_set(e, ERR_IO, "not all of the chat is saved: %s", why);
    }
    return 0;
}

int saving_rename(struct saving *s, const char *name, struct err *e)
{
    char old[STORE_NAME_BYTES], new[STORE_NAME_BYTES];
    bool has_name;
    int rc;

    if (s->store == NULL)
        return err_set(e, ERR_ARGUMENT, "this chat is not saved");
    has_name = own_name(s, saving_path(s), old, sizeof old);
    rc = store_rename(s->store, name, e);
    if (rc == 0)
        s->is_new = false; /* a name is worth keeping */
    if (rc == 0 && has_name && own_name(s, saving_path(s), new, sizeof new))
        saving_kv_moved(s, old, new);
    report_losses(s);
    return rc;
}

/* ---- what happens in the conversation ---- */

static uint32_t add(struct saving *s, enum store_kind kind, const char *text, size_t n)
{
    uint32_t item = STORE_NO_ITEM;
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_add(s->store, kind, text, n, &item, &e), &e);
    return item;
}

uint32_t saving_user(struct saving *s, const char *text, size_t n, const struct attached *a)
{
    uint32_t item = STORE_NO_ITEM;
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_add_user(s->store, text, n, a, &item, &e), &e);
    return item;
}

uint32_t saving_queued_user(struct saving *s, const char *text, size_t n,
                            const struct attached *a)
{
    uint32_t item = STORE_NO_ITEM;
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_add_queued(s->store, text, n, a, &item, &e), &e);
    return item;
}

/* Does the chat have this system message, "" for none? */
static bool has_system(const struct saving *s, const char *text)
{
    uint32_t item = store_system(s->store);
    struct err ignored = ERR_INIT;
    size_t n = strlen(text);
    struct store_text saved;
    bool has;

    if (item == STORE_NO_ITEM)
        return n == 0;
    if (store_item(s->store, item)->text_bytes != n ||
        store_text(s->store, item, &saved, &ignored) != 0)
        return false;
    has = saved.len == n && memcmp(saved.text, text, n) == 0;
    store_text_free(&saved);
    return has;
}

void saving_system(struct saving *s, const char *text)
{
    if (s->store != NULL && !has_system(s, text))
        add(s, STORE_SYSTEM, text, strlen(text));
}

char *saving_system_text(struct saving *s)
{
    uint32_t item = s->store == NULL ? STORE_NO_ITEM : store_system(s->store);
    struct err e = ERR_INIT;
    struct store_text saved;
    char why[300];

    if (item == STORE_NO_ITEM || store_item(s->store, item)->text_bytes == 0)
        return NULL;
    if (store_item(s->store, item)->text_bytes > SYSTEM_BYTES)
        err_set(&e, ERR_FORMAT, "it has more than %zu KiB", SYSTEM_BYTES >> 10);
    else if (store_text(s->store, item, &saved, &e) == 0) {
        free(saved.thinking);
        return saved.text;
    }
    err_text(&e, why, sizeof why);
    note_opened(s, "the system message of this chat is not used: %s\n", why);
    return NULL;
}

uint32_t saving_notice(struct saving *s, const char *text)
{
    return add(s, STORE_NOTICE, text, strlen(text));
}

uint32_t saving_help(struct saving *s, const char *text)
{
    uint32_t item = STORE_NO_ITEM;
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_add_help(s->store, text, strlen(text), &item, &e), &e);
    return item;
}

void saving_piece(struct saving *s, const char *text, size_t n, bool is_thinking, bool resumes)
{
    struct err e = ERR_INIT;

    s->is_new = false;
    if (s->store != NULL)
        saving_noted(s, store_piece(s->store, text, n, is_thinking, resumes, NULL, &e), &e);
}

void saving_thought(struct saving *s)
{
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_thought(s->store, &e), &e);
}

uint32_t saving_done(struct saving *s, const struct mw_receipt *r, const struct mw_event *ev,
                     uint64_t context, bool resumes)
{
    struct err e = ERR_INIT;
    struct store_end end = { .cut = ev->cut, .held = ev->text, .resume = resumes };

    s->is_new = false;
    if (s->store == NULL)
        return STORE_NO_ITEM;
    end.cut.n_held = ev->len; /* without memory the event has no text */
    saving_noted(s, store_done(s->store, r, context, &end, &e), &e);
    return store_count(s->store) - 1;
}

void saving_rewind(struct saving *s, size_t n)
{
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_rewind(s->store, n, &e), &e);
}

void saving_settings(struct saving *s, const char *text)
{
    struct err e = ERR_INIT;

    if (s->store != NULL && strcmp(store_settings(s->store), text) != 0)
        saving_noted(s, store_set_settings(s->store, text, &e), &e);
}

void saving_model(struct saving *s, const char *file, const char *name)
{
    const struct store_model *m = s->store == NULL ? NULL : store_model(s->store);
    struct err e = ERR_INIT;

    if (m != NULL && (strcmp(m->file, file) != 0 || strcmp(m->name, name) != 0))
        saving_noted(s, store_set_model(s->store, file, name, &e), &e);
}

void saving_queue(struct saving *s, const char *text, const struct attached *a)
{
    struct err e = ERR_INIT;

    if (s->store != NULL)
        saving_noted(s, store_queue(s->store, text, strlen(text), a, &e), &e);
}

void saving_unqueue(struct saving *s, size_t n)
{
    struct err e = ERR_INIT;

    if (s->store != NULL && n > 0)
        saving_noted(s, store_unqueue(s->store, n, &e), &e);
}

/* ---- reading ---- */

int saving_find(const struct saving *s, size_t n, struct err *e)
{
    uint32_t item;

    if (s->store == NULL || n >= store_messages(s->store))
        return 0;
    return store_item_of(s->store, (uint32_t)n, &item, e);
}

/* Read the start of message n; free with store_text_free().  -1: it is not available. */
static int read_start(const struct saving *s, size_t n, size_t max, struct store_text *out)
{
    struct err ignored = ERR_INIT;
    uint32_t item;

    if (s->store == NULL || n >= store_messages(s->store) ||
        store_item_of(s->store, (uint32_t)n, &item, &ignored) != 0)
        return -1;
    return store_text_start(s->store, item, max, out, &ignored);
}

char *saving_text(const struct saving *s, size_t n, size_t max)
{
    struct store_text text;

    if (read_start(s, n, max, &text) != 0)
        return NULL;
    free(text.thinking);
    return text.text;
}

struct attached saving_attached(const struct saving *s, size_t n, size_t max)
{
    struct attached found = { 0 };
    struct store_text text;

    if (read_start(s, n, max, &text) == 0) {
        found = text.attached;
        store_text_free(&text);
    }
    return found;
}
