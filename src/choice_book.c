/* See choice_book.h. */
#include "config.h"

#include "src/choice_book.h"

#include <sys/stat.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/new_file.h"
#include "src/limits_book.h"

#define BOOK_LINES  40
#define KEEP_S      (30 * 24 * 3600)
#define MOST_TOKENS 1e9

struct line {
    struct choice_key key;
    struct mw_choice choice;
};

void choice_key_of(struct choice_key *k, const char *path)
{
    struct stat st;

    *k = (struct choice_key){ 0 };
    if (stat(path, &st) == 0)
        *k = (struct choice_key){ st.st_dev, st.st_ino, (uint64_t)st.st_size,
                                  st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
                                  st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec };
}

static bool is_same(const struct choice_key *a, const struct choice_key *b)
{
    return a->dev == b->dev && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed_ns == b->changed_ns && a->inode_changed_ns == b->inode_changed_ns;
}

static bool read_line(const char *text, struct line *l)
{
    struct choice_key *k = &l->key;
    struct mw_choice *c = &l->choice;
    double sum = 0;
    int used = 0;

    if (sscanf(text,
               "%" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %lf%n",
               &c->observed_s, &k->dev, &k->inode, &k->bytes, &k->changed_ns,
               &k->inode_changed_ns, &c->n_token, &used) != 7 ||
        c->observed_s <= 0 || !(c->n_token > 0) || c->n_token > MOST_TOKENS)
        return false;
    for (int i = 0; i < MW_CHOICE_PARTS; i++) {
        int more = 0;

        text += used;
        if (sscanf(text, "%lf%n", &c->share[i], &more) != 1 || !(c->share[i] >= 0))
            return false;
        sum += c->share[i];
        used = more;
    }
    return sum > 0.99 && sum < 1.01;
}

static void write_line(FILE *f, const struct line *l)
{
    fprintf(f, "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %.0f",
            l->choice.observed_s, l->key.dev, l->key.inode, l->key.bytes, l->key.changed_ns,
            l->key.inode_changed_ns, l->choice.n_token);
    for (int i = 0; i < MW_CHOICE_PARTS; i++)
        fprintf(f, " %.6f", l->choice.share[i]);
    fputc('\n', f);
}

/* Returns the number of lines. */
static int read_book(const char *path, struct line lines[BOOK_LINES])
{
    char *text = limits_book_text(path), *at = text, *line;
    int n = 0;

    while (n < BOOK_LINES && (line = strsep(&at, "\n")) != NULL)
        n += read_line(line, &lines[n]);
    free(text);
    return n;
}

void choice_book_find(const char *path, const struct choice_key *k, int64_t now_s,
                      struct mw_choice *out)
{
    static struct line lines[BOOK_LINES];
    int n = read_book(path, lines);

    *out = (struct mw_choice){ 0 };
    for (int i = n - 1; i >= 0; i--) {
        const struct mw_choice *c = &lines[i].choice;

        if (is_same(&lines[i].key, k) && c->observed_s <= now_s &&
            now_s - c->observed_s <= KEEP_S)
            *out = *c;
    }
}

void choice_book_keep(const char *path, const struct choice_key *k, const struct mw_choice *c)
{
    static struct line lines[BOOK_LINES];
    struct line new = { *k, *c };
    struct err ignored = ERR_INIT;
    struct new_file file;
    int n;

    if (c->observed_s == 0 || k->bytes == 0)
        return;
    n = read_book(path, lines);
    if (new_file_begin(&file, path, true, &ignored) != 0)
        return;
    write_line(file.f, &new);
    for (int i = 0, kept = 1; i < n && kept < BOOK_LINES; i++)
        if (!is_same(&lines[i].key, k)) {
            write_line(file.f, &lines[i]);
            kept++;
        }
    new_file_end(&file, &ignored);
}
