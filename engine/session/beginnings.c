#include "config.h"

#include "engine/session/beginnings.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"
#include "engine/memwall.h"

#define PATH_BYTES  4400
#define LIST_NAME   "beginnings"
#define LIST_DIGITS 16 /* of a fingerprint, in the list */
#define LIST_LINES  4096
#define LIST_BYTES  (LIST_LINES * (LIST_DIGITS + 1))

static bool path_of(const struct beginnings *b, const char *print, char buf[PATH_BYTES])
{
    return (size_t)snprintf(buf, PATH_BYTES, "%s/" MW_KV_BEGINNING "%.*s" MW_KV_SUFFIX,
                            b->folder, MW_KV_BEGINNING_DIGITS, print) < PATH_BYTES;
}

static void forget(struct beginnings *b)
{
    free(b->print);
    b->print = NULL;
    b->n_print = b->n_kept = 0;
}

void beginnings_other_chat(struct beginnings *b)
{
    free(b->own);
    b->own = NULL;
}

int beginnings_set(struct beginnings *b, const char *folder, uint64_t max_bytes, struct err *e)
{
    bool is_same = folder != NULL && b->folder != NULL && strcmp(folder, b->folder) == 0;
    char *copy = folder != NULL ? strdup(folder) : NULL;

    if (folder != NULL && copy == NULL)
        return err_memory(e, "the name of a folder");
    if (!is_same)
        forget(b);
    if (b->folder != NULL) /* the first chat may be loaded already */
        beginnings_other_chat(b);
    free(b->folder);
    b->folder = copy;
    b->max_bytes = max_bytes;
    return 0;
}

void beginnings_free(struct beginnings *b)
{
    forget(b);
    free(b->own);
    free(b->folder);
    b->own = b->folder = NULL;
}

/* --- the list of prompts --- */

static bool list_path(const struct beginnings *b, char buf[PATH_BYTES])
{
    return (size_t)snprintf(buf, PATH_BYTES, "%s/" LIST_NAME, b->folder) < PATH_BYTES;
}

/* Returns the lines of the list, for free(); NULL: there are none. */
static char *read_list(const struct beginnings *b)
{
    struct err ignored = ERR_INIT;
    char path[PATH_BYTES];

    return list_path(b, path) ? small_file_read_own(path, LIST_BYTES, NULL, &ignored) : NULL;
}

static bool is_in_list(const char *list, const char *print)
{
    char digits[LIST_DIGITS + 1];

    snprintf(digits, sizeof digits, "%.*s", LIST_DIGITS, print);
    return list != NULL && strstr(list, digits) != NULL;
}

/* Whether another chat had the prompt with this fingerprint, too. */
static bool is_of_others(const struct beginnings *b, const char *list, const char *print)
{
    return is_in_list(list, print) && !is_in_list(b->own, print);
}

/* Allocate space for n more lines of this chat's own. */
static int reserve_own(struct beginnings *b, size_t n, struct err *e)
{
    size_t len = b->own != NULL ? strlen(b->own) : 0;
    char *own = realloc(b->own, len + n * (LIST_DIGITS + 1) + 1);

    if (own == NULL)
        return err_memory(e, "the list of beginnings");
    own[len] = '\0';
    b->own = own;
    return 0;
}

static void add_own(struct beginnings *b, char (*print)[DIGEST_HEX], uint32_t n)
{
    struct err ignored = ERR_INIT; /* without memory, a beginning of one chat may be kept */
    char *own;

    if (reserve_own(b, n, &ignored) != 0)
        return;
    own = b->own + strlen(b->own);
    for (uint32_t i = 0; i < n; i++)
        if (!is_in_list(b->own, print[i]))
            own += snprintf(own, LIST_DIGITS + 2, "%.*s\n", LIST_DIGITS, print[i]);
}

void beginnings_take_own(struct beginnings *b, const struct mw_session *s, uint32_t n)
{
    uint32_t n_page = n / KV_PAGE;
    char(*print)[DIGEST_HEX] = n_page > 0 ? malloc(n_page * sizeof *print) : NULL;

    if (print == NULL)
        return;
    session_fingerprints(s, n_page, print);
    add_own(b, print, n_page);
    free(print);
}

/* Append the fingerprints that are not in the list.  The oldest lines go. */
static int add_to_list(struct beginnings *b, struct err *e)
{
    char path[PATH_BYTES], *list = read_list(b);
    const char *old = list != NULL ? list : "";
    size_t len = strlen(old), n_new = 0, all;
    struct new_file file;
    int rc = 0;

    for (uint32_t i = 0; i < b->n_print; i++)
        n_new += !is_in_list(list, b->print[i]);
    all = len + n_new * (LIST_DIGITS + 1);
    if (all > LIST_BYTES) {
        size_t gone = all - LIST_BYTES < len ? all - LIST_BYTES : len;

        old += (gone + LIST_DIGITS) / (LIST_DIGITS + 1) * (LIST_DIGITS + 1);
    }
    if (n_new > 0 && list_path(b, path)) {
        rc = reserve_own(b, n_new, e) != 0 ? -1 : new_file_begin(&file, path, true, e);
        if (rc == 0) {
            char *own = b->own + strlen(b->own);

            fputs(list != NULL && old < list + len ? old : "", file.f);
            for (uint32_t i = 0; i < b->n_print; i++)
                if (!is_in_list(list, b->print[i]))
                    own += snprintf(own, LIST_DIGITS + 2, "%.*s\n", LIST_DIGITS, b->print[i]);
            fputs(own - n_new * (LIST_DIGITS + 1), file.f);
            rc = new_file_end(&file, e);
        }
    }
    free(list);
    return rc;
}

/* --- using --- */

/* Returns the pages of the longest beginning that is kept and has more than `held` tokens. */
static uint32_t find_kept(const struct beginnings *b, uint32_t held, char path[PATH_BYTES],
                          uint64_t *bytes)
{
    struct stat st;

    for (uint32_t n = b->n_print; n * KV_PAGE > held; n--) {
        if (!path_of(b, b->print[n - 1], path) || lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        *bytes = (uint64_t)st.st_blocks * 512;
        return n;
    }
    return 0;
}

/* Returns the pages that are shared with all prompts. */
static uint32_t find_common(const struct beginnings *b, uint32_t n_common)
{
    uint32_t common = n_common / KV_PAGE;

    return common < b->n_print ? common : b->n_print;
}

/* Returns the pages that are shared with prompts of other chats or with all. */
static uint32_t find_shared(const struct beginnings *b, uint32_t n_common)
{
    uint32_t common = find_common(b, n_common), n = b->n_print;
    char *list = read_list(b);

    while (n > common && !is_of_others(b, list, b->print[n - 1]))
        n--;
    free(list);
    return n;
}

/* Returns false if there is no file, after all. */
static bool load(struct mw_session *s, const char *path, uint32_t n,
                 const struct saved_kv_call *call, struct beginning_use *use)
{
    uint64_t start = clock_ns();
    struct saved_kv loaded;

    if (session_load_beginning(s, path, n, call, &loaded, &use->err) != 0) {
        if (use->err.code != ERR_IO ||
            (use->err.sys != ENOENT && use->err.sys != EWOULDBLOCK))
            return true;
        use->err = (struct err)ERR_INIT;
        return false;
    }
    (void)utimensat(AT_FDCWD, path, NULL, 0); /* it was used now */
    use->n_token = loaded.n_token;
    use->bytes = loaded.bytes;
    use->ns = clock_ns() - start;
    return true;
}

void beginnings_use(struct beginnings *b, struct mw_session *s, const uint32_t *ids, uint32_t n,
                    uint32_t n_common, bool is_new, const struct saved_kv_call *call,
                    struct beginning_use *use)
{
    uint32_t held = mw_session_tokens(s), n_page = (n - 1) / KV_PAGE, kept;
    struct err ignored = ERR_INIT;
    char path[PATH_BYTES];
    uint64_t bytes = 0;

    *use = (struct beginning_use){ .err = ERR_INIT };
    forget(b);
    session_mark_beginning(s, 0);
    if (b->folder == NULL || n_page == 0 ||
        session_expect(s, ids + held, n - held, &ignored) != 0)
        return;
    b->print = malloc(n_page * sizeof *b->print);
    if (b->print == NULL)
        return;
    b->n_print = n_page;
    session_fingerprints(s, n_page, b->print);
    if (!is_new) /* its chat may have begun in another process */
        add_own(b, b->print, n_page);
    kept = find_kept(b, held, path, &bytes);
    if (kept > 0 && session_reads_faster(s, bytes, kept * KV_PAGE - held) &&
        !load(s, path, kept * KV_PAGE, call, use))
        kept = 0;
    b->n_kept = is_new ? find_shared(b, n_common) : find_common(b, n_common);
    if (b->n_kept <= kept && use->err.code == ERR_NONE)
        b->n_kept = 0;
    session_mark_beginning(s, b->n_kept * KV_PAGE);
}

/* --- keeping --- */

/* Whether the session still holds the beginning. */
static bool is_held(const struct beginnings *b, const struct mw_session *s)
{
    uint32_t n = b->n_kept;
    char(*print)[DIGEST_HEX];
    bool is;

    if (session_beginning_bytes(s, n * KV_PAGE) == 0)
        return false;
    print = malloc(n * sizeof *print);
    if (print == NULL)
        return false;
    session_fingerprints(s, n, print);
    is = strcmp(print[n - 1], b->print[n - 1]) == 0;
    free(print);
    return is;
}

/* One request that waits may never use it. */
bool beginnings_pay(const struct beginnings *b, const struct mw_session *s)
{
    uint32_t n = b->n_kept * KV_PAGE;
    uint64_t bytes = b->folder != NULL ? session_beginning_bytes(s, n) : 0;

    return bytes > 0 && session_writes_faster(s, bytes, n);
}

static int keep(struct beginnings *b, struct mw_session *s, const struct saved_kv_call *call,
                struct err *e)
{
    uint32_t n = b->n_kept * KV_PAGE;
    uint64_t bytes = session_beginning_bytes(s, n);
    struct mw_kv_file file;
    char path[PATH_BYTES];
    struct saved_kv saved;
    int rc;

    if (!path_of(b, b->print[b->n_kept - 1], path))
        return 0;
    if (mw_kv_look(path, &file)) { /* the session held it and did not look for it before */
        (void)utimensat(AT_FDCWD, path, NULL, 0);
        return 0;
    }
    if (bytes == 0 || !is_held(b, s) ||
        (b->max_bytes > 0 && bytes > b->max_bytes) || !session_reads_faster(s, bytes, n))
        return 0;
    rc = session_save_beginning(s, path, n, call, &saved, e);
    if (rc == 0 || e->code != ERR_CANCELLED) /* also if the disk is full */
        mw_kv_trim(b->folder, b->max_bytes, path);
    return rc;
}

int beginnings_keep(struct beginnings *b, struct mw_session *s,
                    const struct saved_kv_call *call, struct err *e)
{
    int rc = 0;

    if (b->folder == NULL || b->n_print == 0)
        return 0;
    (void)folder_make(b->folder);
    if (b->n_kept > 0)
        rc = keep(b, s, call, e);
    if (rc == 0)
        rc = add_to_list(b, e);
    if (rc == 0 || e->code != ERR_CANCELLED)
        forget(b);
    return rc;
}
