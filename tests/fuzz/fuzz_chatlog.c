/* A saved chat that anybody may have written is opened and can continue, or is refused. */
#include "config.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz_file.h"
#include "ui/store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* From item `from` on, every text is there, with the length that the item states, and so are the
 * ids and the queue. */
static void read_from(const struct store *s, uint32_t from)
{
    for (uint32_t i = from; i < store_count(s); i++) {
        const struct store_item *item = store_item(s, i);
        struct store_text t;
        uint32_t *ids;
        size_t n;
        struct err e;

        if (item->n_held > (item->holds_thinking ? item->thinking_bytes : item->text_bytes) ||
            store_ids(s, i, &ids, &n, &e) != 0 || n > MW_CUT_IDS || (n > 0) != (ids != NULL))
            abort();
        free(ids);

        if (store_text(s, i, &t, &e) != 0 || t.len != store_item(s, i)->text_bytes ||
            t.thinking_len != store_item(s, i)->thinking_bytes)
            abort();
        store_text_free(&t);
    }
    if (store_queue_count(s) > STORE_MAX_QUEUE)
        abort();
    for (uint32_t i = 0; i < store_queue_count(s); i++) {
        struct store_text t;
        struct err e;

        if (store_queue_text(s, i, &t, &e) != 0)
            abort();
        store_text_free(&t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *locale;
    int fd = fuzz_file(data, size);
    struct err e = ERR_INIT;
    struct store *s;
    uint32_t count, item;
    char path[40];

    if (locale == NULL)
        locale = setlocale(LC_CTYPE, "C.UTF-8");
    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (store_open(&s, path, &e) != 0) {
        if (e.what[0] == '\0')
            abort();
        return 0;
    }
    count = store_count(s);
    read_from(s, 0);
    store_close(s);
    if (store_open(&s, path, &e) != 0 || store_count(s) != count)
        abort();
    if (count < STORE_MAX_ITEMS &&
        (store_piece(s, "more", 4, false, false, &item, &e) != 0 || item != count))
        abort();
    read_from(s, count > 0 ? count - 1 : 0);
    store_close(s);
    if (store_open(&s, path, &e) != 0 || store_count(s) != count + 1)
        abort();
    read_from(s, 0);
    store_close(s);
    return 0;
}
