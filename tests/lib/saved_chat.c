#include "config.h"

#include "tests/lib/saved_chat.h"

#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/tree.h"

char dir[64], chats[80];
struct err e;

const struct mw_receipt receipt = {
    .done = MW_DONE_STOP,
    .n_prompt = 34,
    .n_decoded = 12,
    .first_ns = 5,
    .prefill_ns = 4,
    .decode_ns = 3400000000,
    .bytes_read = 41000000000,
    .stall_ns = 2400000000,
    .peak_charged = 1524713390,
};

int saved_chat_set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/memwall-store-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(chats, sizeof chats, "%s/new/chats", dir);
    return 0;
}

int saved_chat_tear_down(void **state)
{
    (void)state;
    return tree_remove(dir);
}

void ok(int result)
{
    char text[700];

    err_text(&e, text, sizeof text);
    if (result != 0)
        fail_msg("%s", text);
}

void user_says(struct store *s, const char *text)
{
    ok(store_add(s, STORE_USER, text, strlen(text), NULL, &e));
}

void answer_says(struct store *s, const char *text, bool is_thinking)
{
    ok(store_piece(s, text, strlen(text), is_thinking, false, NULL, &e));
}

char *slurp(const char *path, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "r");
    char *all;

    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    all = malloc((size_t)st.st_size + 1);
    assert_non_null(all);
    *n = fread(all, 1, (size_t)st.st_size, f);
    all[*n] = '\0';
    fclose(f);
    return all;
}

void spill(const char *path, const char *s, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(s, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}
