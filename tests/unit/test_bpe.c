/* Merging: the result is that of the rule applied literally. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/text/bpe.h"

#define N_TOKEN 400
#define N_MERGE 2000

static uint64_t seed = 12345;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % n);
}

struct table {
    struct arena arena;
    struct pairs pairs;
    struct pair list[N_MERGE];
    uint32_t length[N_TOKEN]; /* symbols of each token */
};

/* The merges of a vocabulary.  Its first n_letter tokens are letters; each later token is the
 * result of one merge and as long as its two parts. */
static void make_table(struct table *t, uint32_t n_letter)
{
    struct err e = ERR_INIT;
    uint32_t n_token = n_letter, n = 0;

    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < n_letter; i++)
        t->length[i] = 1;
    while (n < N_MERGE && n_token < N_TOKEN) {
        uint32_t a = random_below(n_token), b = random_below(n_token);

        if (t->length[a] + t->length[b] > 40)
            continue;
        t->length[n_token] = t->length[a] + t->length[b];
        t->list[n++] = (struct pair){ a, b, n_token++ };
    }
    /* Ranks are in another order than ids. */
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = random_below(i);
        struct pair swap = t->list[i - 1];

        t->list[i - 1] = t->list[k];
        t->list[k] = swap;
    }
    assert_int_equal(arena_map(&t->arena, "test", pairs_bytes(n), false, &e), 0);
    assert_int_equal(pairs_start(&t->pairs, &t->arena, N_TOKEN, n, &e), 0);
    for (uint32_t i = 0; i < n; i++)
        pairs_add(&t->pairs, i, &t->list[i]);
}

/* Apply the rule literally. */
static size_t merge_literally(const struct table *t, uint32_t *id, size_t n)
{
    for (;;) {
        uint32_t best = NO_RANK;
        size_t at = 0;

        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t rank = NO_RANK;

            for (uint32_t k = 0; k < t->pairs.n_merge && rank == NO_RANK; k++)
                if (t->list[k].left == id[i] && t->list[k].right == id[i + 1])
                    rank = k;
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == NO_RANK)
            return n;
        id[at] = t->list[best].merged;
        memmove(id + at + 1, id + at + 2, (n - at - 2) * sizeof *id);
        n--;
    }
}

static void merging_follows_the_rule_at_every_length(void **state)
{
    static const size_t lengths[] = { 0,  1,  2,  3,  15,  16,  17,  31,  32,
                                      33, 34, 63, 64, 255, 256, 257, 300, 600 };
    struct err e = ERR_INIT;

    (void)state;
    for (int round = 0; round < 6; round++) {
        struct table t;
        struct bpe b = { 0 };

        make_table(&t, 2 + (uint32_t)round * 3);
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            uint32_t want[600];
            size_t n = lengths[i], n_want;

            assert_int_equal(bpe_reserve(&b, n, &e), 0);
            for (size_t k = 0; k < n; k++)
                want[k] = b.id[k] = random_below(2 + (uint32_t)round * 3);
            n_want = merge_literally(&t, want, n);
            assert_int_equal(bpe_run(&b, &t.pairs, n), n_want);
            if (n_want > 0)
                assert_memory_equal(b.id, want, n_want * sizeof *want);
        }
        bpe_free(&b);
        arena_unmap(&t.arena);
    }
}

static void runs_of_one_letter_merge_from_the_left(void **state)
{
    struct err e = ERR_INIT;
    struct arena a;
    struct pairs p;
    struct bpe b = { 0 };
    const size_t n = 100003;
    size_t left;

    (void)state;
    /* 0 0 -> 1, 1 1 -> 2, 2 2 -> 3: groups of eight from the left, then the remainder. */
    assert_int_equal(arena_map(&a, "test", pairs_bytes(3), false, &e), 0);
    assert_int_equal(pairs_start(&p, &a, 4, 3, &e), 0);
    for (uint32_t i = 0; i < 3; i++)
        pairs_add(&p, i, &(struct pair){ i, i, i + 1 });
    assert_int_equal(bpe_reserve(&b, n, &e), 0);
    memset(b.id, 0, n * sizeof *b.id);
    left = bpe_run(&b, &p, n);
    assert_int_equal(left, n / 8 + 2);
    for (size_t i = 0; i < n / 8; i++)
        assert_int_equal(b.id[i], 3);
    assert_int_equal(b.id[left - 2], 1);
    assert_int_equal(b.id[left - 1], 0);
    bpe_free(&b);
    arena_unmap(&a);
}

static void a_pair_that_is_listed_twice_keeps_its_first_rank(void **state)
{
    struct err e = ERR_INIT;
    struct arena a;
    struct pairs p;

    (void)state;
    assert_int_equal(arena_map(&a, "test", pairs_bytes(4), false, &e), 0);
    assert_int_equal(pairs_start(&p, &a, 10, 4, &e), 0);
    pairs_add(&p, 0, &(struct pair){ 1, 2, 3 });
    pairs_add(&p, 1, &(struct pair){ 2, 1, 4 });
    pairs_add(&p, 2, &(struct pair){ 1, 2, 5 });
    assert_int_equal(pairs_rank(&p, 1, 2), 0);
    assert_int_equal(pairs_rank(&p, 2, 1), 1);
    assert_int_equal(pairs_rank(&p, 2, 2), NO_RANK);
    assert_int_equal(p.merged[pairs_rank(&p, 1, 2)], 3);
    arena_unmap(&a);
}

static void too_large_a_vocabulary_is_refused(void **state)
{
    struct err e = ERR_INIT;
    struct arena a = { .name = "test" };
    struct pairs p;

    (void)state;
    assert_int_equal(pairs_start(&p, &a, UINT32_MAX, 1000, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_follows_the_rule_at_every_length),
        cmocka_unit_test(runs_of_one_letter_merge_from_the_left),
        cmocka_unit_test(a_pair_that_is_listed_twice_keeps_its_first_rank),
        cmocka_unit_test(too_large_a_vocabulary_is_refused),
    };

    return cmocka_run_group_tests_name("bpe", tests, NULL, NULL);
}
