/*
 * A beginning that was kept gives the bits of evaluating it, for all families and KV types.  A
 * file that is damaged, forged or of something else never gives other bits.  Chats keep what
 * they share, use it, and write nothing where they must not.
 */
#include "config.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/plan/plan.h"
#include "engine/session/saved_beginning.h"
#include "engine/session/session_internal.h"
#include "tests/lib/calls.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kv_folder.h"
#include "tests/lib/model_path.h"

#define N_CTX    720
#define N_KEPT   512 /* two pages */
#define N_PROMPT 560
#define TINY     "gemma4-tiny-q4_0.gguf" /* windows of 16 tokens, shared layers */

static const struct saved_kv_call usual = { .max_bytes = 0 };
static uint32_t ids[N_CTX];

/* --- calls --- */

static void make_ids(const struct mw_model *m, uint64_t seed)
{
    struct chance chance = { .state = seed };
    uint32_t n = vocab_of(m);

    for (uint32_t i = 0; i < N_CTX; i++)
        ids[i] = chance_below(&chance, n);
}

static void go_back(struct mw_session *s, uint32_t n)
{
    struct err e = ERR_INIT;
    uint32_t kept;

    no_error(mw_session_rewind(s, n, &kept, &e), &e);
}

/* Evaluate the prompt, make a copy at N_KEPT, and write the beginning. */
static void keep(struct mw_session *s)
{
    struct err e = ERR_INIT;
    struct saved_kv out;

    session_mark_beginning(s, N_KEPT);
    eval(s, ids, N_PROMPT);
    no_error(session_save_beginning(s, kv_path, N_KEPT, &usual, &out, &e), &e);
    assert_int_equal(out.n_token, N_KEPT);
}

/* Expect the first n ids and load the beginning. */
static bool load(struct mw_session *s, uint32_t n, struct err *e)
{
    struct saved_kv out;
    bool ok;

    *e = (struct err)ERR_INIT;
    go_back(s, 0);
    no_error(session_expect(s, ids, n, e), e);
    ok = session_load_beginning(s, kv_path, N_KEPT, &usual, &out, e) == 0;
    assert_int_equal(mw_session_tokens(s), ok ? N_KEPT : 0);
    return ok;
}

/* Evaluate what is left of the first n ids, and compare the last row. */
static void ends_with(struct mw_session *s, uint32_t n, const float *row, uint32_t n_vocab)
{
    uint32_t held = mw_session_tokens(s);

    eval(s, ids + held, n - held);
    assert_memory_equal(mw_session_logits(s), row, n_vocab * sizeof *row);
}

/* --- families and types --- */

static void a_loaded_beginning_has_the_bits(struct mw_model *m, const char *name, enum mw_kv kv)
{
    struct mw_options o = small_options(N_CTX);
    uint32_t n_vocab = vocab_of(m);
    struct mw_session *a, *b;
    struct err e = ERR_INIT;
    struct plan plan;
    float *row;

    o.kv_k = o.kv_v = kv;
    o.draft = strncmp(name, "mtp-", 4) == 0 ? MW_DRAFT_MTP : MW_DRAFT_OFF;
    if (mw_plan(m, &o, &plan, &e) != 0 && e.code == ERR_UNSUPPORTED)
        return; /* its heads are too short for this type */
    a = open_session(m, &o);
    b = open_session(m, &o);
    keep(a);
    eval(b, ids + 100, 30); /* another conversation, which goes */
    if (!load(b, N_PROMPT, &e))
        fail_with(&e);
    row = malloc(n_vocab * sizeof *row);
    memcpy(row, mw_session_logits(a), n_vocab * sizeof *row);
    ends_with(b, N_PROMPT, row, n_vocab);
    /* Another question after the same beginning, and a longer one. */
    for (uint32_t n = N_KEPT + 1; n < N_CTX; n += 150) {
        struct mw_session *c = open_session(m, &o);

        ids[N_KEPT]++;
        ids[N_KEPT] %= n_vocab;
        eval(c, ids, n);
        if (!load(b, n, &e))
            fail_with(&e);
        memcpy(row, mw_session_logits(c), n_vocab * sizeof *row);
        ends_with(b, n, row, n_vocab);
        mw_session_close(c);
    }
    print_message("%s, kv %s\n", name, mw_kv_name(kv));
    free(row);
    mw_session_close(a);
    mw_session_close(b);
}

static void a_family_begins_with_the_same_bits(void **state)
{
    static const enum mw_kv types[] = { MW_KV_F32, MW_KV_F16, MW_KV_Q8_0, MW_KV_Q4_0 };
    struct mw_model *m = open_model(*state);

    make_ids(m, 11);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        a_loaded_beginning_has_the_bits(m, *state, types[i]);
    mw_model_close(m);
}

/* --- files that do not fit --- */

static void refuses(struct mw_session *s, const char *why)
{
    struct err e;

    if (load(s, N_PROMPT, &e))
        fail_msg("a beginning is used: %s", why);
    if (strstr(e.what, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", e.what, why);
}

static void a_beginning_that_does_not_fit_is_refused(void **state)
{
    struct mw_options o = small_options(N_CTX), other = o;
    struct mw_model *m = open_model(TINY), *n = open_model("llama-tiny.gguf");
    struct mw_session *a = open_session(m, &o), *b;
    struct err e = ERR_INIT;
    struct saved_kv out;

    (void)state;
    make_ids(n, 14); /* the smaller vocabulary */
    unlink(kv_path);
    refuses(a, "No such file");
    keep(a);
    other.kv_v = MW_KV_F32;
    b = open_session(m, &other);
    refuses(b, "KV types");
    assert_int_equal(access(kv_path, F_OK), -1); /* its name says that it fits */
    mw_session_close(b);
    go_back(a, 0);
    keep(a);
    b = open_session(n, &o);
    refuses(b, "another model");
    mw_session_close(b);
    go_back(a, 0);
    keep(a);
    ids[3]++;
    refuses(a, "another text");
    ids[3]--;
    /* A model with windows has no beginning without a copy at its end. */
    eval(a, ids, N_PROMPT);
    assert_int_equal(session_beginning_bytes(a, N_KEPT), 0);
    assert_int_equal(session_save_beginning(a, kv_path, N_KEPT, &usual, &out, &e), -1);
    assert_int_equal(access(kv_path, F_OK), -1);
    /* A file of a chat is none of a beginning. */
    go_back(a, 0);
    eval(a, ids, N_KEPT);
    no_error(session_save_kv(a, kv_path, &usual, &out, &e), &e);
    refuses(a, "contradict");
    mw_session_close(a);
    mw_model_close(m);
    mw_model_close(n);
}

/* --- sizes --- */

static void a_session_without_workspace_has_no_beginning(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_session *s = open_session(m, &o);
    struct workspace *work = s->work;

    (void)state;
    make_ids(m, 19);
    eval(s, ids, N_PROMPT);
    assert_true(session_beginning_bytes(s, N_KEPT) > 0);
    s->work = NULL;
    assert_int_equal(session_beginning_bytes(s, N_KEPT), 0);
    s->work = work;
    mw_session_close(s);
    mw_model_close(m);
}

static int count_bytes(void *sum, void *bytes, size_t n, struct err *e)
{
    (void)bytes;
    (void)e;
    *(uint64_t *)sum += n;
    return 0;
}

/* Those of the pages, of the copy and of the ids, and nothing that only memory has. */
static void check_bytes(struct mw_session *s)
{
    uint64_t sum = 0;
    struct err e = ERR_INIT;

    for (uint32_t i = 0; i < kv_page_count(s->kv, N_KEPT); i++)
        no_error(kv_each_page(s->kv, i, N_KEPT, count_bytes, &sum, &e), &e);
    assert_int_equal(kv_page_bytes_at(s->kv, N_KEPT), sum);
    assert_int_equal(kv_page_bytes_at(s->kv, N_KEPT - 1), sum);
    assert_int_equal(session_beginning_bytes(s, N_KEPT),
                     sum + kv_copy_bytes_at(s->kv, N_KEPT) + N_KEPT * sizeof(uint32_t));
}

static void a_size_is_that_of_the_file(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(*state);
    struct mw_session *s = open_session(m, &o);

    make_ids(m, 20);
    session_mark_beginning(s, N_KEPT);
    eval(s, ids, N_PROMPT);
    check_bytes(s);
    mw_session_close(s);
    mw_model_close(m);
}

/* The slots of pages on the disk are in memory only. */
static void a_size_has_no_slots(void **state)
{
    struct mw_options o = small_options(24000);
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_session *s;

    (void)state;
    make_ids(m, 21);
    o.cache_folder = kv_folder;
    o.memory_bytes = 0;
    o.memory_bytes = smallest_budget(m, &o);
    s = open_session(m, &o);
    assert_true(s->plan.has_kv_disk);
    eval(s, ids, N_PROMPT);
    eval(s, ids + N_PROMPT, 1); /* complete pages go to the disk between two passes */
    assert_true(kv_disk_bytes(s->kv) > 0);
    check_bytes(s);
    mw_session_close(s);
    mw_model_close(m);
}

/* --- fingerprints --- */

static void a_fingerprint_is_of_all_that_counts(void **state)
{
    struct mw_options o = small_options(N_CTX), other = o;
    struct mw_model *m = open_model(TINY);
    struct mw_session *a = open_session(m, &o), *b;
    char one[2][DIGEST_HEX], two[2][DIGEST_HEX];
    struct err e = ERR_INIT;

    (void)state;
    make_ids(m, 15);
    no_error(session_expect(a, ids, N_PROMPT, &e), &e);
    session_fingerprints(a, 2, one);
    assert_string_not_equal(one[0], one[1]);
    /* The ids after a page do not count, and those before it do. */
    ids[N_KEPT]++;
    no_error(session_expect(a, ids, N_PROMPT, &e), &e);
    session_fingerprints(a, 2, two);
    assert_memory_equal(one, two, sizeof one);
    ids[KV_PAGE]++;
    no_error(session_expect(a, ids, N_PROMPT, &e), &e);
    session_fingerprints(a, 2, two);
    assert_string_equal(one[0], two[0]);
    assert_string_not_equal(one[1], two[1]);
    ids[KV_PAGE]--;
    ids[0]++;
    no_error(session_expect(a, ids, N_PROMPT, &e), &e);
    session_fingerprints(a, 2, two);
    assert_string_not_equal(one[0], two[0]);
    assert_string_not_equal(one[1], two[1]);
    ids[0]--;
    other.kv_k = MW_KV_F32;
    b = open_session(m, &other);
    no_error(session_expect(b, ids, N_PROMPT, &e), &e);
    session_fingerprints(b, 2, two);
    assert_string_not_equal(one[0], two[0]);
    mw_session_close(a);
    mw_session_close(b);
    mw_model_close(m);
}

/* --- damage --- */

static unsigned char *file_bytes;
static size_t file_size;

static void keep_file(void)
{
    struct stat st;
    int fd = open(kv_path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(fstat(fd, &st), 0);
    file_size = (size_t)st.st_size;
    free(file_bytes);
    file_bytes = malloc(file_size);
    assert_int_equal(read(fd, file_bytes, file_size), file_size);
    close(fd);
}

static void put_file(size_t n)
{
    int fd = open(kv_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, file_bytes, n), n);
    assert_int_equal(close(fd), 0);
}

static void damage_never_gives_other_bits(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(*state);
    struct mw_session *a = open_session(m, &o), *b = open_session(m, &o);
    struct chance chance = { .state = 77 };
    uint32_t n_vocab = vocab_of(m), n_used = 0;
    struct err e;

    make_ids(m, 16);
    unlink(kv_path);
    keep(a);
    keep_file();
    for (int i = 0; i < 72; i++) {
        size_t at = chance_below(&chance, (uint32_t)file_size);
        unsigned char was = file_bytes[at];
        bool ok;

        if (i < 60)
            file_bytes[at] ^= (unsigned char)(1u << chance_below(&chance, 8));
        put_file(i < 60 ? file_size : at);
        file_bytes[at] = was;
        ok = load(b, N_PROMPT, &e);
        n_used += ok;
        assert_true(ok || e.what[0] != '\0');
        ends_with(b, N_PROMPT, mw_session_logits(a), n_vocab);
    }
    put_file(file_size);
    assert_true(load(b, N_PROMPT, &e));
    print_message("%s: %u of 72 damaged files were used\n", (const char *)*state, n_used);
    mw_session_close(a);
    mw_session_close(b);
    mw_model_close(m);
}

/* The last part with other numbers and a right checksum. */
static void write_forged(const unsigned char *bytes, size_t n, uint32_t n_part,
                         const struct kv_file_head *head)
{
    struct err e = ERR_INIT;
    struct kv_file *f;

    no_error(kv_file_change(&f, kv_path, 4096, &e), &e);
    kv_file_begin(f);
    for (uint32_t i = 0; i + 1 < n_part; i++)
        no_error(kv_file_keep(f, i, &e), &e);
    no_error(kv_file_write(f, bytes, n, &e), &e);
    no_error(kv_file_end_part(f, &e), &e);
    no_error(kv_file_commit(f, head, &e), &e);
    kv_file_close(f);
}

static void a_forged_beginning_does_no_harm(void **state)
{
    static const uint32_t values[] = {
        0, 1, 255, 512, 721, 0x7fffffff, 0x80000000u, 0xffffffffu
    };
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(*state);
    struct mw_session *a = open_session(m, &o), *b = open_session(m, &o);
    struct chance chance = { .state = 78 };
    unsigned char *tail = malloc(4 * MIB), *forged = malloc(4 * MIB);
    struct kv_file_head head;
    size_t n = 0;
    uint32_t n_part;
    struct err e = ERR_INIT;
    struct kv_file *f;

    make_ids(m, 17);
    unlink(kv_path);
    keep(a);
    keep_file();
    no_error(kv_file_open(&f, kv_path, 4096, &e), &e);
    head = *kv_file_head(f);
    n_part = kv_file_parts(f);
    kv_file_seek(f, n_part - 1);
    while (n < 4 * MIB && kv_file_read(f, tail + n, 1, &e) == 0)
        n++;
    kv_file_close(f);
    for (int i = 0; i < 100; i++) {
        struct kv_file_head other = head;
        uint32_t at = chance_below(&chance, 2) == 0 ? chance_below(&chance, 4)
                                                    : chance_below(&chance, 4 + N_KEPT);
        size_t len = n;

        put_file(file_size);
        memcpy(forged, tail, n);
        switch (chance_below(&chance, 4)) {
        case 0: len = 1 + chance_below(&chance, (uint32_t)n); break;
        case 1: other.n_token = chance_below(&chance, 2 * N_CTX); break;
        default: memcpy(forged + 4 * (size_t)at, &values[chance_below(&chance, 8)], 4); break;
        }
        write_forged(forged, len, n_part, &other);
        (void)load(b, N_PROMPT, &e);
        ends_with(b, N_PROMPT, mw_session_logits(a), vocab_of(m));
    }
    free(tail);
    free(forged);
    mw_session_close(a);
    mw_session_close(b);
    mw_model_close(m);
}

static void a_full_disk_leaves_no_file(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(TINY);
    struct mw_session *a = open_session(m, &o);
    struct saved_kv out;

    (void)state;
    make_ids(m, 18);
    session_mark_beginning(a, N_KEPT);
    eval(a, ids, N_PROMPT);
    unlink(kv_path);
    for (unsigned long n = 0; n <= 2 * KV_PIECE; n += KV_PIECE / 2) {
        struct err e = ERR_INIT;

        kv_folder_limit(n);
        assert_int_equal(session_save_beginning(a, kv_path, N_KEPT, &usual, &out, &e), -1);
        kv_folder_limit(RLIM_INFINITY);
        assert_int_equal(e.code, ERR_IO);
        assert_int_equal(access(kv_path, F_OK), -1);
    }
    mw_session_close(a);
    mw_model_close(m);
}

/* --- chats --- */

static struct mw_model *model;

/* A text of about so many words, which begins the same at any length. */
static char *text_of(uint32_t n_word, uint64_t seed)
{
    struct chance chance = { .state = seed };
    char *text = malloc(n_word * 8 + 1), *at = text;

    for (uint32_t i = 0; i < n_word; i++)
        at += sprintf(at, "%c%u ", 'a' + (int)chance_below(&chance, 26),
                      chance_below(&chance, 1000));
    return text;
}

static struct mw_chat_options chat_options(const char *system)
{
    struct mw_chat_options o = { .engine = small_options(4096), .n_predict = 8 };

    mw_sampling_default(model, &o.sampling);
    o.sampling.temp = 1;
    o.sampling.seed = (struct mw_seed){ true, 7 };
    o.system = system;
    o.engine.saves_kv = true;
    return o;
}

/* Wait for the end of an answer.  Returns how many tokens of its beginning were read. */
static uint64_t listen_to(struct mw_chat *c, struct said *said)
{
    struct mw_event event;
    uint64_t n = 0;
    bool is_over = false;

    memset(said, 0, sizeof *said);
    while (!is_over) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };

        if (poll(&p, 1, 60000) != 1)
            fail_msg("no event within a minute");
        while (mw_chat_next(c, &event)) {
            if (event.kind == MW_EVENT_KV_SHARED) {
                if (event.err.code != ERR_NONE)
                    snprintf(said->notice, sizeof said->notice, "%.200s", event.err.what);
                n = event.n;
            }
            if (event.kind == MW_EVENT_TEXT && said->len + event.len < sizeof said->text) {
                memcpy(said->text + said->len, event.text, event.len);
                said->len += event.len;
            }
            if (event.kind == MW_EVENT_DONE) {
                said->receipt = event.receipt;
                said->err = event.err;
                is_over = true;
            }
        }
    }
    if (said->err.code != ERR_NONE)
        fail_with(&said->err);
    return n;
}

/* Ask in a chat of its own, and wait until everything is written.  folder NULL: nothing is
 * shared.  Returns how many tokens of its beginning were read. */
static uint64_t ask_alone(const struct mw_chat_options *o, const char *folder, uint64_t most,
                          const char *question, struct said *said)
{
    struct mw_chat *c = open_chat(model, o);
    struct err e = ERR_INIT;
    uint64_t n;

    if (folder != NULL)
        no_error(mw_chat_share_kv(c, folder, most, &e), &e);
    no_error(mw_chat_send(c, question, strlen(question), &e), &e);
    n = listen_to(c, said);
    mw_chat_rewind(c, 0, &e); /* another command, after which all is written */
    no_error(mw_chat_save_kv(c, kv_path, MW_KV_LIMIT, &e), &e);
    mw_chat_finish_kv(c, 60000);
    mw_chat_close(c);
    unlink(kv_path);
    return n;
}

static void assert_same(const struct said *a, const struct said *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->text, b->text, a->len);
}

static size_t n_files(void)
{
    struct err e = ERR_INIT;
    struct mw_kv_file *all;
    size_t n;

    no_error(mw_kv_list(kv_folder, &all, &n, &e), &e);
    for (size_t i = 0; i < n; i++)
        assert_true(all[i].is_beginning && all[i].n_token % KV_PAGE == 0);
    free(all);
    return n;
}

static void a_system_message_is_kept_once(void **state)
{
    char *system = text_of(150, 1);
    struct mw_chat_options o;
    struct said first, second, plain;
    uint64_t n;

    model = open_model(*state);
    o = chat_options(system);
    kv_folder_clean();
    assert_int_equal(ask_alone(&o, kv_folder, MW_KV_LIMIT, "hello there", &first), 0);
    assert_int_equal(n_files(), 1);
    n = ask_alone(&o, kv_folder, MW_KV_LIMIT, "and what is that?", &second);
    assert_true(n >= KV_PAGE && n % KV_PAGE == 0);
    assert_int_equal(second.receipt.n_reused, n);
    assert_int_equal(n_files(), 1);
    assert_int_equal(ask_alone(&o, NULL, 0, "and what is that?", &plain), 0);
    assert_same(&second, &plain);
    assert_int_equal(second.receipt.n_prompt + n, plain.receipt.n_prompt);
    free(system);
    mw_model_close(model);
}

static void a_manual_is_kept_when_it_comes_again(void **state)
{
    char *manual = text_of(300, 2), *question = malloc(strlen(manual) + 40);
    static const char *const ends[] = { "what?", "who was it, and when?", "why" };
    struct mw_chat_options o;
    struct said said, plain;

    model = open_model(*state);
    o = chat_options(NULL);
    kv_folder_clean();
    for (int i = 0; i < 3; i++) {
        uint64_t n;

        sprintf(question, "%s%s", manual, ends[i]);
        n = ask_alone(&o, kv_folder, MW_KV_LIMIT, question, &said);
        assert_int_equal(n_files(), i == 0 ? 0 : 1);
        assert_int_equal(n > 0, i == 2);
        ask_alone(&o, NULL, 0, question, &plain);
        assert_same(&said, &plain);
        assert_int_equal(said.receipt.n_prompt + n, plain.receipt.n_prompt);
    }
    /* Another text has nothing in common with it. */
    free(manual);
    manual = text_of(300, 3);
    assert_int_equal(ask_alone(&o, kv_folder, MW_KV_LIMIT, manual, &said), 0);
    assert_int_equal(n_files(), 1);
    free(question);
    free(manual);
    mw_model_close(model);
}

static void only_what_may_be_kept_is_kept(void **state)
{
    char *system = text_of(150, 4), path[500];
    struct mw_chat_options o;
    struct said said;
    struct stat st;

    (void)state;
    model = open_model(TINY);
    o = chat_options(system);
    kv_folder_clean();
    (void)ask_alone(&o, NULL, 0, "hello", &said);
    snprintf(path, sizeof path, "%s/beginnings", kv_folder);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(n_files(), 0);
    /* It is larger than all files may be. */
    (void)ask_alone(&o, kv_folder, 1000, "hello", &said);
    assert_int_equal(n_files(), 0);
    (void)ask_alone(&o, kv_folder, MW_KV_LIMIT, "hello", &said);
    assert_int_equal(n_files(), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    free(system);
    mw_model_close(model);
}

static void a_damaged_beginning_is_made_again(void **state)
{
    char *system = text_of(150, 5), path[600];
    struct mw_chat_options o;
    struct said said, plain;
    struct err e = ERR_INIT;
    struct mw_kv_file *all;
    size_t n;
    int fd;

    (void)state;
    model = open_model(TINY);
    o = chat_options(system);
    kv_folder_clean();
    (void)ask_alone(&o, kv_folder, MW_KV_LIMIT, "hello", &said);
    no_error(mw_kv_list(kv_folder, &all, &n, &e), &e);
    assert_int_equal(n, 1);
    snprintf(path, sizeof path, "%s/%s" MW_KV_SUFFIX, kv_folder, all[0].name);
    free(all);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "damage", 6, 8192 + 100), 6);
    close(fd);
    assert_int_equal(ask_alone(&o, kv_folder, MW_KV_LIMIT, "and?", &said), 0);
    assert_non_null(strstr(said.notice, "damaged"));
    ask_alone(&o, NULL, 0, "and?", &plain);
    assert_same(&said, &plain);
    assert_true(ask_alone(&o, kv_folder, MW_KV_LIMIT, "and?", &said) >= KV_PAGE);
    assert_same(&said, &plain);
    free(system);
    mw_model_close(model);
}

/* --- requests --- */

/* Make a request of a process of its own.  Returns how many tokens of its beginning were read. */
static uint64_t request_alone(const struct mw_chat_options *o, const char *folder,
                              const char *system, const char *rest, struct said *said)
{
    struct mw_chat *c = open_chat(model, o);
    char *messages = malloc(strlen(system) + strlen(rest) + 100);
    struct mw_request r = { .messages = messages };
    struct err e = ERR_INIT;
    uint64_t n;

    r.messages_len = (size_t)sprintf(messages, "[{\"role\":\"system\",\"content\":\"%s\"},%s]",
                                     system, rest);
    if (folder != NULL)
        no_error(mw_chat_share_kv(c, folder, MW_KV_LIMIT, &e), &e);
    no_error(mw_chat_ask(c, &r, o, &e), &e);
    n = listen_to(c, said);
    mw_chat_finish_kv(c, 60000);
    mw_chat_close(c);
    free(messages);
    return n;
}

#define USER(text)      "{\"role\":\"user\",\"content\":\"" text "\"}"
#define ASSISTANT(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

static void a_request_reads_what_others_began_with(void **state)
{
    char *system = text_of(150, 12), *other = text_of(150, 13);
    static const char *const rests[] = { USER("and what is that?"),
                                         USER("a") "," ASSISTANT("b") "," USER("c") };
    struct mw_chat_options o;
    struct said said, plain;

    model = open_model(*state);
    o = chat_options(NULL);
    kv_folder_clean();
    assert_int_equal(request_alone(&o, kv_folder, system, USER("hello there"), &said), 0);
    assert_int_equal(n_files(), 1);
    assert_int_equal(request_alone(&o, kv_folder, other, USER("hello there"), &said), 0);
    assert_int_equal(n_files(), 2);
    for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
        uint64_t n = request_alone(&o, kv_folder, system, rests[i], &said);

        assert_true(n >= KV_PAGE && n % KV_PAGE == 0);
        assert_int_equal(said.receipt.n_reused, n);
        assert_int_equal(request_alone(&o, NULL, system, rests[i], &plain), 0);
        assert_same(&said, &plain);
    }
    assert_int_equal(n_files(), 2);
    free(system);
    free(other);
    mw_model_close(model);
}

/* Requests wait one after the other, so the chat is never idle. */
static void ask_twice(const char *name, bool has_limits, size_t n_written)
{
    char *system[2] = { text_of(150, 14), text_of(150, 15) };
    struct mw_chat_options o;
    struct err e = ERR_INIT;
    struct mw_event event;
    struct mw_chat *c;
    int n_done = 0;

    model = open_model(name);
    o = chat_options(NULL);
    if (has_limits)
        give_limits(model, &o.engine, 1e12); /* a disk that is faster than evaluating */
    kv_folder_clean();
    c = open_chat(model, &o);
    no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
    for (int i = 0; i < 2; i++) {
        char *messages = malloc(strlen(system[i]) + 100);
        struct mw_request r = { .messages = messages };

        r.messages_len = (size_t)sprintf(
            messages, "[{\"role\":\"system\",\"content\":\"%s\"},%s]", system[i], USER("hello"));
        no_error(mw_chat_ask(c, &r, &o, &e), &e);
        free(messages);
    }
    while (n_done < 2) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };

        assert_int_equal(poll(&p, 1, 60000), 1);
        while (mw_chat_next(c, &event))
            n_done += event.kind == MW_EVENT_DONE;
    }
    mw_chat_finish_kv(c, 60000);
    mw_chat_close(c);
    assert_int_equal(n_files(), n_written);
    free(system[0]);
    free(system[1]);
    mw_model_close(model);
}

static void a_beginning_is_written_between_two_requests(void **state)
{
    ask_twice(*state, true, 2);
}

/* Nothing says that writing takes less time. */
static void no_request_waits_for_what_is_not_predicted(void **state)
{
    ask_twice(*state, false, 1);
}

/* --- one chat --- */

/* Wait until everything is written that an answer left. */
static void wait_until_written(struct mw_chat *c)
{
    struct err e = ERR_INIT;

    no_error(mw_chat_save_kv(c, kv_path, MW_KV_LIMIT, &e), &e);
    mw_chat_finish_kv(c, 60000);
    unlink(kv_path);
}

static void ask_and_write(struct mw_chat *c, const char *question)
{
    struct said said;

    ask(c, question, &said);
    wait_until_written(c);
}

static void retry_and_write(struct mw_chat *c)
{
    struct err e = ERR_INIT;
    struct said said;

    no_error(mw_chat_retry(c, &e), &e);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
    wait_until_written(c);
}

/* The only beginning in the folder. */
static void find_beginning(char path[600])
{
    struct err e = ERR_INIT;
    struct mw_kv_file *all;
    size_t n;

    no_error(mw_kv_list(kv_folder, &all, &n, &e), &e);
    assert_int_equal(n, 1);
    snprintf(path, 600, "%s/%s" MW_KV_SUFFIX, kv_folder, all[0].name);
    free(all);
}

#define HEADERS 8192 /* bytes, with the number of the last change */

static void read_headers(const char *path, unsigned char out[HEADERS])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(read(fd, out, HEADERS), HEADERS);
    close(fd);
}

static void a_beginning_is_written_once(void **state)
{
    static const struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    static unsigned char first[HEADERS], then[HEADERS];
    char *system = text_of(150, 7), path[600];
    struct mw_chat_options o;
    struct stat before, after;
    struct mw_chat *c;
    struct err e = ERR_INIT;

    model = open_model(*state);
    o = chat_options(system);
    kv_folder_clean();
    c = open_chat(model, &o);
    no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
    ask_and_write(c, "hello there");
    find_beginning(path);
    read_headers(path, first);
    for (int i = 0; i < 3; i++) { /* a new chat, a changed question, the same again */
        assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
        assert_int_equal(stat(path, &before), 0);
        if (i < 2)
            no_error(mw_chat_rewind(c, 0, &e), &e);
        if (i == 0)
            no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
        if (i < 2)
            ask_and_write(c, i == 0 ? "and what is that?" : "and who?");
        else
            retry_and_write(c);
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(after.st_ino, before.st_ino);
        assert_int_equal(after.st_blocks, before.st_blocks);
        assert_true(after.st_mtime > before.st_mtime); /* it was used */
        read_headers(path, then);
        assert_memory_equal(first, then, HEADERS);
    }
    mw_chat_close(c);
    free(system);
    mw_model_close(model);
}

static void a_question_that_comes_again_in_its_chat_is_not_kept(void **state)
{
    char *text = text_of(300, 8), *question = malloc(strlen(text) + 40);
    struct mw_chat_options o;
    struct mw_chat *c;
    struct said said;
    struct err e = ERR_INIT;

    model = open_model(*state);
    o = chat_options(NULL);
    kv_folder_clean();
    c = open_chat(model, &o);
    no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
    sprintf(question, "%swhat?", text);
    ask_and_write(c, question);
    retry_and_write(c);
    assert_int_equal(n_files(), 0);
    no_error(mw_chat_rewind(c, 0, &e), &e);
    sprintf(question, "%sand who was it?", text);
    ask_and_write(c, question);
    assert_int_equal(n_files(), 0);
    /* Other chats of the same program, of which the second begins with it. */
    for (int i = 0; i < 2; i++) {
        no_error(mw_chat_rewind(c, 0, &e), &e);
        no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
        ask_and_write(c, i == 0 ? "hello" : question);
        assert_int_equal(n_files(), i);
    }
    mw_chat_close(c);
    /* And another program reads it. */
    assert_true(ask_alone(&o, kv_folder, MW_KV_LIMIT, question, &said) > 0);
    free(question);
    free(text);
    mw_model_close(model);
}

static void a_question_of_a_saved_chat_is_not_kept(void **state)
{
    char *question = text_of(300, 10);
    struct mw_message messages[] = {
        { .role = MW_USER, .text = question, .len = strlen(question) },
        { .role = MW_ASSISTANT, .text = "yes", .len = 3 },
    };
    struct mw_chat_options o;
    struct said said;
    struct err e = ERR_INIT;

    (void)state;
    model = open_model("llama-tiny.gguf");
    o = chat_options(NULL);
    for (int i = 0; i < 2; i++) { /* the same question again, and another one after it */
        struct mw_chat *c;

        kv_folder_clean();
        (void)ask_alone(&o, kv_folder, MW_KV_LIMIT, question, &said);
        assert_int_equal(n_files(), 0);
        c = open_chat(model, &o);
        no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
        no_error(mw_chat_restore(c, messages, 2, 0, &e), &e);
        if (i == 0)
            retry_and_write(c);
        else
            ask_and_write(c, "and?");
        assert_int_equal(n_files(), 0);
        mw_chat_close(c);
    }
    free(question);
    mw_model_close(model);
}

/* The first message of a chat that goes on in another process is edited: it is the same chat. */
static void an_edited_question_of_a_resumed_chat_is_not_kept(void **state)
{
    char *text = text_of(300, 14), *question = malloc(strlen(text) + 40);
    struct mw_message messages[] = { { .role = MW_USER }, { .role = MW_ASSISTANT } };
    struct mw_chat_options o;
    struct said said, first;
    struct err e = ERR_INIT;
    struct mw_chat *c;

    model = open_model(*state);
    o = chat_options(NULL);
    for (int i = 0; i < 2; i++) { /* the folder is set after the chat was loaded, and before */
        kv_folder_clean();
        c = open_chat(model, &o);
        no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
        sprintf(question, "%swhat?", text);
        ask(c, question, &first);
        no_error(mw_chat_save_kv(c, kv_path, MW_KV_LIMIT, &e), &e);
        mw_chat_finish_kv(c, 60000);
        mw_chat_close(c);

        messages[0].text = question;
        messages[0].len = strlen(question);
        messages[1].text = first.text;
        messages[1].len = first.len;
        c = open_chat(model, &o);
        no_error(mw_chat_restore(c, messages, 2, 0, &e), &e);
        if (i == 1)
            no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
        no_error(mw_chat_load_kv(c, kv_path, &e), &e);
        if (i == 0)
            no_error(mw_chat_share_kv(c, kv_folder, MW_KV_LIMIT, &e), &e);
        no_error(mw_chat_rewind(c, 0, &e), &e);
        sprintf(question, "%sand who was it?", text);
        ask(c, question, &said);
        wait_until_written(c);
        assert_int_equal(n_files(), 0);
        mw_chat_close(c);
    }
    free(question);
    free(text);
    mw_model_close(model);
}

/* Another process has made a file, and has not written its header yet. */
static void a_beginning_that_is_being_written_is_not_there(void **state)
{
    char *system = text_of(150, 9), path[600];
    struct mw_chat_options o;
    struct said said, plain;
    struct stat before, after;
    int fd;

    (void)state;
    model = open_model(TINY);
    o = chat_options(system);
    kv_folder_clean();
    (void)ask_alone(&o, kv_folder, MW_KV_LIMIT, "hello", &said);
    ask_alone(&o, NULL, 0, "and?", &plain);
    find_beginning(path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(fstat(fd, &before), 0);
    assert_int_equal(ask_alone(&o, kv_folder, MW_KV_LIMIT, "and?", &said), 0);
    assert_string_equal(said.notice, "");
    assert_same(&said, &plain);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    close(fd);
    /* The process was killed: it is unfinished, deleted and written again. */
    assert_int_equal(ask_alone(&o, kv_folder, MW_KV_LIMIT, "and?", &said), 0);
    assert_non_null(strstr(said.notice, "never completely written"));
    assert_true(ask_alone(&o, kv_folder, MW_KV_LIMIT, "and?", &said) >= KV_PAGE);
    assert_same(&said, &plain);
    free(system);
    mw_model_close(model);
}

/* --- kills --- */

/* A process that keeps beginnings until it is killed. */
static void keep_for_ever(const char *system)
{
    struct mw_chat_options o;
    static struct said said;

    model = open_model(TINY);
    o = chat_options(system);
    for (int i = 0;; i++) {
        char question[40];

        snprintf(question, sizeof question, "hello %d", i);
        (void)ask_alone(&o, kv_folder, MW_KV_LIMIT, question, &said);
        kv_folder_clean();
    }
}

static void a_kill_leaves_no_wrong_beginning(void **state)
{
    char *system = text_of(150, 6);
    struct chance chance = { .state = 5 };
    struct mw_chat_options o;
    struct said said, plain;
    uint32_t n_used = 0;

    (void)state;
    model = open_model(TINY);
    o = chat_options(system);
    ask_alone(&o, NULL, 0, "hello", &plain);
    for (int i = 0; i < 20; i++) {
        pid_t child;

        kv_folder_clean();
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            keep_for_ever(system);
            _exit(0);
        }
        poll(NULL, 0, 40 + (int)chance_below(&chance, 260));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        n_used += ask_alone(&o, kv_folder, MW_KV_LIMIT, "hello", &said) > 0;
        assert_same(&said, &plain);
    }
    print_message("%u of 20 beginnings were whole\n", n_used);
    free(system);
    mw_model_close(model);
}

/* --- frame --- */

static int end(void **state)
{
    free(file_bytes);
    return kv_folder_end(state);
}

#define OF(test, name)                                                                         \
    {                                                                                          \
#test ": " name, test, NULL, NULL, (void *)(uintptr_t)name                             \
    }
#define FAMILY(name) OF(a_family_begins_with_the_same_bits, name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAMILY(TINY),
        FAMILY("llama-tiny.gguf"),
        FAMILY("qwen3-tiny.gguf"),
        FAMILY("phi3-longrope-short-tiny.gguf"),
        FAMILY("gemma4-moe-tiny-q4_0.gguf"),
        FAMILY("f-gptoss"),
        FAMILY("f-deepseek3.gguf"),   /* latent attention */
        FAMILY("f-qwen35moe"),        /* gated delta nets */
        FAMILY("mtp-qwen35moe.gguf"), /* the same with a draft head */
        FAMILY("f-lfm2moe.gguf"),     /* short convolutions */
        FAMILY("f-falconh1.gguf"),    /* Mamba-2 beside attention */
        FAMILY("f-ling3.gguf"),       /* Kimi's delta attention, and latent attention */
        FAMILY("f-deepseek4.gguf"),   /* windows and entries, which are open pools at first */
        FAMILY("f-glm53flash.gguf"),  /* index keys that are pools */
        FAMILY("f-museglimmer.gguf"), /* hyper entries, n-grams */
        FAMILY("q4e-a.gguf"),
        FAMILY("gemma4-tiny-q4_k_m.gguf"), /* heads of 64, for quantised types */
        cmocka_unit_test(a_beginning_that_does_not_fit_is_refused),
        cmocka_unit_test(a_session_without_workspace_has_no_beginning),
        OF(a_size_is_that_of_the_file, TINY),
        OF(a_size_is_that_of_the_file, "f-deepseek4.gguf"),
        OF(a_size_is_that_of_the_file, "f-falconh1.gguf"),
        cmocka_unit_test(a_size_has_no_slots),
        cmocka_unit_test(a_fingerprint_is_of_all_that_counts),
        OF(damage_never_gives_other_bits, "llama-tiny.gguf"),
        OF(damage_never_gives_other_bits, TINY),
        OF(damage_never_gives_other_bits, "f-qwen35moe"),
        OF(a_forged_beginning_does_no_harm, TINY),
        OF(a_forged_beginning_does_no_harm, "f-deepseek4.gguf"),
        OF(a_forged_beginning_does_no_harm, "f-museglimmer.gguf"),
        cmocka_unit_test(a_full_disk_leaves_no_file),
        OF(a_system_message_is_kept_once, TINY), /* windows */
        OF(a_system_message_is_kept_once, "qwen3-tiny.gguf"),
        OF(a_system_message_is_kept_once, "f-falconh1.gguf"), /* recurrent state */
        OF(a_request_reads_what_others_began_with, TINY),
        OF(a_request_reads_what_others_began_with, "f-falconh1.gguf"),
        OF(a_beginning_is_written_between_two_requests, TINY),
        OF(a_beginning_is_written_between_two_requests, "f-falconh1.gguf"),
        OF(no_request_waits_for_what_is_not_predicted, TINY),
        OF(a_manual_is_kept_when_it_comes_again, TINY),
        OF(a_manual_is_kept_when_it_comes_again, "llama-tiny.gguf"),
        OF(a_manual_is_kept_when_it_comes_again, "f-falconh1.gguf"),
        cmocka_unit_test(only_what_may_be_kept_is_kept),
        cmocka_unit_test(a_damaged_beginning_is_made_again),
        OF(a_beginning_is_written_once, TINY),
        OF(a_beginning_is_written_once, "qwen3-tiny.gguf"),
        OF(a_question_that_comes_again_in_its_chat_is_not_kept, TINY),
        OF(a_question_that_comes_again_in_its_chat_is_not_kept, "llama-tiny.gguf"),
        cmocka_unit_test(a_question_of_a_saved_chat_is_not_kept),
        { "edited: llama", an_edited_question_of_a_resumed_chat_is_not_kept, NULL, NULL,
          (void *)(uintptr_t) "llama-tiny.gguf" },
        { "edited: gemma 4", an_edited_question_of_a_resumed_chat_is_not_kept, NULL, NULL,
          (void *)(uintptr_t) "gemma4-tiny-q4_0.gguf" },
        cmocka_unit_test(a_beginning_that_is_being_written_is_not_there),
        cmocka_unit_test(a_kill_leaves_no_wrong_beginning),
    };

    return cmocka_run_group_tests_name("beginning", tests, kv_folder_begin, end);
}
