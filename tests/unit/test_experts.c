/* The cache of experts: any size and any way of reading gives the bytes of the files. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/stream/expert_cache.h"
#include "engine/stream/expert_policy.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/stream_model.h"

enum { LAYERS = 4, EXPERTS = 24, USED = 6 };

static struct telemetry telemetry;
static struct stream_model model;
static struct expert_layer layers[LAYERS];
static struct expert_sizes sizes;

static struct stream_mode modes[] = {
    { "direct io_uring", STREAM_DIRECT, false, false },
    { "direct pread", STREAM_DIRECT, true, false },
    { "buffered", STREAM_BUFFERED, false, false },
    { "mmap", STREAM_MMAP, false, false },
    { "mmap drop", STREAM_MMAP, false, true },
};

static int set_up(void **state)
{
    (void)state;
    memset(&telemetry, 0, sizeof telemetry);
    model_seed(7);
    model_make(&model, 3000000);
    for (uint32_t l = 0; l < LAYERS; l++) {
        /* The second layer is dense.  Parts begin anywhere in a page, and the last expert of
         * one ends with its file. */
        uint64_t down = model.files[1].size - (uint64_t)EXPERTS * 2777;

        layers[l] = (struct expert_layer){ 0 };
        if (l == 1)
            continue;
        layers[l] = (struct expert_layer){
            .n_expert = EXPERTS,
            .n_used = USED,
            .n_part = 2,
            .part = { { .file = 0, .offset = 11 + l * 400001, .bytes = 15001 },
                      { .file = 1, .offset = l == 3 ? down : 5 + l * 100003, .bytes = 2777 } },
        };
    }
    expert_sizes_of(layers, LAYERS, &sizes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    model_remove(&model);
    return 0;
}

static struct stream *open_stream(const struct stream_mode *mode)
{
    struct stream_options o = {
        .io = mode->io, .no_uring = mode->no_uring, .mmap_drop = mode->drop, .n_slot = 2
    };
    struct stream_shape shape;
    struct err e = ERR_INIT;
    struct stream *s;

    shape_make(&shape, model.spans, model.n_span, 65536);
    if (stream_open(&s, &model.catalogue, model.spans, model.n_span, &shape, &o, &telemetry,
                    &e) != 0) {
        if (e.code == ERR_UNSUPPORTED)
            skip();
        no_error(-1, &e);
    }
    return s;
}

static struct expert_cache *open_cache(struct stream *s, uint32_t n_slot)
{
    struct expert_cache *c;
    struct err e = ERR_INIT;

    no_error(
        expert_cache_open(&c, s, layers, LAYERS, n_slot * sizes.slot_bytes, &telemetry, &e),
        &e);
    return c;
}

static void check_weights(uint32_t layer, const struct expert_weights *w)
{
    for (uint32_t p = 0; p < layers[layer].n_part; p++) {
        const struct expert_part *from = &layers[layer].part[p];

        assert_memory_equal(w->part[p],
                            model.bytes[from->file] + from->offset + w->expert * from->bytes,
                            from->bytes);
    }
}

/* Request random experts and take them in groups.  Stop after `most` of them. */
static void request(struct expert_cache *c, uint32_t layer, uint32_t n_token, uint32_t most)
{
    uint32_t experts[EXPERTS], n_choice[EXPERTS], n = 0, done = 0;
    bool is_returned[EXPERTS] = { false };
    uint64_t stall = 0;
    struct err e = ERR_INIT;

    for (uint32_t i = 0; i < EXPERTS; i++)
        if (model_random(EXPERTS) < (n_token > 1 ? EXPERTS - 2 : USED)) {
            experts[n] = i;
            n_choice[n++] = 1 + (uint32_t)model_random(n_token);
        }
    expert_cache_begin(c, layer, n_token, experts, n_choice, n);
    for (uint32_t end = 0; end < n && done < most;) {
        uint32_t first = end;

        end += 1 + (uint32_t)model_random(n - end);
        for (uint32_t i = first; i < end && done < most; i++, done++) {
            struct expert_weights w;
            bool is_in_group = false;

            no_error(expert_cache_next(c, end, &w, &stall, &e), &e);
            for (uint32_t k = first; k < end; k++)
                is_in_group |= experts[k] == w.expert;
            assert_true(is_in_group);
            assert_false(is_returned[w.expert]);
            is_returned[w.expert] = true;
            check_weights(layer, &w);
            expert_cache_give(c);
        }
    }
}

static void run_passes(struct expert_cache *c, int n)
{
    for (int i = 0; i < n; i++)
        for (uint32_t l = 0; l < LAYERS; l++)
            if (layers[l].n_expert > 0)
                request(c, l, i % 4 == 3 ? 9 : 1,
                        model_random(8) == 0 ? (uint32_t)model_random(3) : EXPERTS);
}

static void every_size_returns_the_bytes_of_the_files(void **state)
{
    static const uint32_t n_slot[] = { 2, 3, 7, 30, 71, 72 };

    for (size_t i = 0; i < sizeof n_slot / sizeof n_slot[0]; i++) {
        struct stream *s = open_stream(*state);
        struct expert_cache *c = open_cache(s, n_slot[i]);

        run_passes(c, 24);
        expert_cache_close(c);
        stream_close(s);
    }
}

static void the_size_changes_between_passes(void **state)
{
    struct stream *s = open_stream(*state);
    struct expert_cache *c = open_cache(s, 40);
    struct err e = ERR_INIT;

    for (int i = 0; i < 30; i++) {
        uint64_t bytes = (2 + model_random(75)) * sizes.slot_bytes + model_random(9000);

        run_passes(c, 2);
        no_error(expert_cache_set_memory(c, bytes, &e), &e);
        assert_true(expert_cache_charged(c) <= bytes);
        if (!stream_is_mapped(s)) {
            uint64_t n = bytes / sizes.slot_bytes;

            assert_int_equal(counter_get(&telemetry.expert_slots),
                             n < sizes.n_all ? n : sizes.n_all);
        }
    }
    expert_cache_close(c);
    stream_close(s);
}

/* With all experts in memory nothing is read again, and a smaller cache reads them again. */
static void experts_in_memory_are_not_read(void **state)
{
    struct stream *s = open_stream(*state);
    struct expert_cache *c = open_cache(s, sizes.n_all);
    struct err e = ERR_INIT;
    uint64_t read;

    run_passes(c, 60);
    assert_int_equal(counter_get(&telemetry.expert_held), sizes.n_all);
    read = counter_get(&telemetry.expert_misses);
    run_passes(c, 10);
    assert_int_equal(counter_get(&telemetry.expert_misses), read);
    no_error(expert_cache_set_memory(c, 20 * sizes.slot_bytes, &e), &e);
    assert_true(expert_cache_charged(c) <= 20 * sizes.slot_bytes);
    run_passes(c, 2);
    assert_true(counter_get(&telemetry.expert_misses) > read);
    expert_cache_close(c);
    stream_close(s);
}

/* A smaller cache keeps the experts that are used most. */
static void popular_experts_stay(void **state)
{
    struct stream *s = open_stream(*state);
    struct expert_cache *c = open_cache(s, sizes.n_all);
    struct err e = ERR_INIT;
    uint64_t stall = 0, misses;

    run_passes(c, 40);
    for (int pass = 0; pass < 300; pass++)
        for (uint32_t l = 0; l < LAYERS; l++) {
            const uint32_t popular[] = { 3, 20 }, once[] = { 1, 1 };
            struct expert_weights w;

            if (layers[l].n_expert == 0)
                continue;
            if (pass == 299 && l == 0) {
                no_error(expert_cache_set_memory(c, 8 * sizes.slot_bytes, &e), &e);
                misses = counter_get(&telemetry.expert_misses);
            }
            expert_cache_begin(c, l, 1, popular, once, 2);
            for (int i = 0; i < 2; i++) {
                no_error(expert_cache_next(c, 2, &w, &stall, &e), &e);
                check_weights(l, &w);
                expert_cache_give(c);
            }
            if (pass == 299)
                assert_int_equal(counter_get(&telemetry.expert_misses), misses);
        }
    expert_cache_close(c);
    stream_close(s);
}

/* 32 experts of a layer: one is chosen by all tokens, one by half of them.  Each part of the
 * ranks has two experts, so the first part has everything; of 8 experts, a part is half of one.
 */
static void use_is_ranked_by_popularity(void **state)
{
    const uint32_t n_expert[] = { 32, 0 }, n_used[] = { 2, 0 }, few[] = { 8 };
    struct expert_policy p;
    struct err e = ERR_INIT;
    struct mw_expert_use use;

    (void)state;
    no_error(expert_policy_open(&p, n_expert, n_used, 2, &e), &e);
    expert_policy_layer(&p, 0, 1000);
    expert_policy_use(&p, 7, 1000);
    expert_policy_use(&p, 20, 500);
    expert_policy_observed(&p, &use);
    assert_true(fabs(use.n_token - 1000) < 1e-9);
    assert_true(fabs(use.share[0] - 1) < 1e-9);
    assert_int_equal(use.observed_s, 0); /* the caller knows the time */
    expert_policy_close(&p);
    no_error(expert_policy_open(&p, few, n_used, 1, &e), &e);
    expert_policy_layer(&p, 0, 1000);
    expert_policy_use(&p, 3, 1000);
    expert_policy_use(&p, 5, 600);
    expert_policy_observed(&p, &use);
    assert_true(fabs(use.share[0] - 5.0 / 16) < 1e-6);
    assert_true(fabs(use.share[1] - 5.0 / 16) < 1e-6);
    assert_true(fabs(use.share[3] - 3.0 / 16) < 1e-6);
    assert_true(fabs(use.share[4]) < 1e-9);
    expert_policy_close(&p);
}

/* A layer whose experts are parts of one file that overlap: 128 MiB from a small file. */
enum { MANY = 256, MANY_BYTES = 512 * 1024 };

static struct expert_layer overlapping_experts(struct tensor_piece *each)
{
    for (uint64_t i = 0; i < MANY; i++)
        each[i] = (struct tensor_piece){ 0, i * 777 };
    return (struct expert_layer){ .n_expert = MANY,
                                  .n_used = 8,
                                  .n_part = 1,
                                  .part = { { .bytes = MANY_BYTES, .each = each } } };
}

/* Use n experts once.  Returns how many are in memory then. */
static uint64_t use_some(struct expert_cache *c, uint32_t n, uint64_t expert_bytes)
{
    static const uint32_t once[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    struct expert_weights w;
    struct err e = ERR_INIT;
    uint64_t stall = 0;

    for (uint32_t at = 0; at < n; at += 8) {
        uint32_t experts[8];

        for (uint32_t i = 0; i < 8; i++)
            experts[i] = at + i;
        expert_cache_begin(c, 0, 1, experts, once, 8);
        for (uint32_t i = 0; i < 8; i++) {
            no_error(expert_cache_next(c, 8, &w, &stall, &e), &e);
            assert_memory_equal(w.part[0], model.bytes[0] + w.expert * 777, expert_bytes);
            expert_cache_give(c);
        }
    }
    return counter_get(&telemetry.expert_held);
}

static uint64_t use_all(struct expert_cache *c)
{
    return use_some(c, MANY, MANY_BYTES);
}

static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long long all, resident;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu %llu", &all, &resident), 2);
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Memory is charged as the cache fills, and falls when the cache gets smaller. */
static void memory_follows_the_size(void **state)
{
    static struct tensor_piece each[MANY];
    struct expert_layer layer = overlapping_experts(each);
    struct stream *s = open_stream(*state);
    struct expert_cache *c;
    struct expert_sizes all;
    struct err e = ERR_INIT;
    uint64_t before = resident_bytes(), full;

    expert_sizes_of(&layer, 1, &all);
    no_error(expert_cache_open(&c, s, &layer, 1, MANY * all.slot_bytes, &telemetry, &e), &e);
    for (int round = 0; round < 3; round++) {
        while (use_all(c) < MANY) /* slots are used when their memory is ready */
            ;
        full = resident_bytes();
        assert_true(full - before >= (uint64_t)MANY * MANY_BYTES);
        assert_int_equal(expert_cache_charged(c), MANY * all.slot_bytes);
        no_error(expert_cache_set_memory(c, 40 * all.slot_bytes, &e), &e);
        assert_true(expert_cache_charged(c) <= 40 * all.slot_bytes);
        assert_true(full - resident_bytes() >= 200 * all.slot_bytes);
        use_all(c);
        assert_true(full - resident_bytes() >= 200 * all.slot_bytes);
        no_error(expert_cache_set_memory(c, MANY * all.slot_bytes, &e), &e);
    }
    expert_cache_close(c);
    stream_close(s);
}

/*
 * A cache that gets smaller gives memory back in huge pages, which several experts share.  It
 * still has every slot that fits the memory, down to the two that a request needs.
 */
static void a_smaller_cache_has_all_slots_that_fit(void **state)
{
    static struct tensor_piece each[MANY];
    static const uint64_t expert_bytes[] = { 60000, MANY_BYTES, 5 * MIB / 4 };
    struct stream *s = open_stream(*state);
    struct err e = ERR_INIT;

    for (size_t k = 0; k < sizeof expert_bytes / sizeof expert_bytes[0]; k++) {
        struct expert_layer layer = overlapping_experts(each);
        struct expert_cache *c;
        struct expert_sizes all;

        layer.part[0].bytes = expert_bytes[k];
        expert_sizes_of(&layer, 1, &all);
        for (uint32_t from = 3; from < 40; from += 12) {
            uint64_t before = resident_bytes();

            no_error(expert_cache_open(&c, s, &layer, 1, from * all.slot_bytes, &telemetry, &e),
                     &e);
            use_some(c, 96, expert_bytes[k]);
            for (uint32_t n = from; n >= 2; n -= 1 + n / 3) {
                uint64_t bytes = n * all.slot_bytes + (n < from ? all.slot_bytes - 1 : 0);

                no_error(expert_cache_set_memory(c, bytes, &e), &e);
                assert_int_equal(counter_get(&telemetry.expert_slots), n);
                use_some(c, 16, expert_bytes[k]);
                assert_true(expert_cache_charged(c) <= bytes);
                assert_true(resident_bytes() < before + bytes + MIB / 2);
            }
            no_error(expert_cache_set_memory(c, 2 * all.slot_bytes, &e), &e);
            use_some(c, 16, expert_bytes[k]);
            no_error(expert_cache_set_memory(c, from * all.slot_bytes, &e), &e);
            assert_int_equal(counter_get(&telemetry.expert_slots), from);
            use_some(c, 16, expert_bytes[k]);
            expert_cache_close(c);
        }
    }
    stream_close(s);
}

static void too_little_memory_is_refused(void **state)
{
    struct stream *s = open_stream(*state);
    struct expert_cache *c;
    struct err e = ERR_INIT;

    assert_int_equal(expert_cache_open(&c, s, layers, LAYERS, sizes.slot_bytes, &telemetry, &e),
                     -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_null(c);
    stream_close(s);
}

static void the_expert_that_is_used_last_goes_first(void **state)
{
    uint32_t n_expert[] = { 8, 8, 8 }, n_used[] = { 2, 2, 2 };
    struct expert_policy p;
    struct err e = ERR_INIT;

    (void)state;
    no_error(expert_policy_open(&p, n_expert, n_used, 3, &e), &e);
    expert_policy_layer(&p, 1, 1);
    /* Nothing is known yet: the nearest layer comes first. */
    assert_true(expert_policy_wait(&p, 2, 0) < expert_policy_wait(&p, 0, 0));
    assert_true(expert_policy_wait(&p, 0, 0) < expert_policy_wait(&p, 1, 0));
    for (int i = 0; i < 40; i++) {
        expert_policy_layer(&p, 1, 1);
        expert_policy_use(&p, 5, 1);
        if (i % 4 == 0)
            expert_policy_use(&p, 6, 1);
    }
    assert_true(expert_policy_wait(&p, 1, 5) < expert_policy_wait(&p, 1, 6));
    assert_true(expert_policy_wait(&p, 1, 6) < expert_policy_wait(&p, 1, 7));
    assert_true(expert_policy_heat(&p, 1, 5) > 1 && expert_policy_heat(&p, 1, 7) < 1);
    /* A prompt uses nearly all of them, so they are needed in the order of the layers. */
    expert_policy_expect(&p, 500);
    expert_policy_layer(&p, 1, 500);
    assert_true(expert_policy_wait(&p, 2, 7) < expert_policy_wait(&p, 0, 5));
    assert_true(expert_policy_wait(&p, 0, 5) < expert_policy_wait(&p, 1, 5));
    /* Its last chunk needs those of the layers ahead, and leaves the popular ones of the layers
     * that it has passed. */
    expert_policy_expect(&p, 1);
    expert_policy_layer(&p, 1, 500);
    expert_policy_use(&p, 5, 400);
    expert_policy_use(&p, 6, 20);
    assert_true(expert_policy_wait(&p, 2, 7) < expert_policy_wait(&p, 1, 5));
    assert_true(expert_policy_wait(&p, 1, 5) < expert_policy_wait(&p, 1, 6));
    assert_true(expert_policy_wait(&p, 1, 5) < expert_policy_wait(&p, 0, 7));
    /* Weights of tokens do not overflow. */
    for (int i = 0; i < 1000; i++) {
        expert_policy_layer(&p, 0, 512);
        expert_policy_use(&p, 1, 512);
    }
    assert_true(expert_policy_heat(&p, 0, 1) > 2 && expert_policy_heat(&p, 0, 1) < 8);
    expert_policy_close(&p);
}

/* A cache that knows what earlier sessions used reads that before the first request, as much as
 * fits. */
static void favourites_are_read_before_the_first_request(void **state)
{
    uint8_t use[LAYERS * EXPERTS] = { 0 }, after[LAYERS * EXPERTS] = { 0 };
    static const uint32_t favourite[] = { 3, 7, 11 };
    uint32_t n_choice[] = { 1, 1, 1 };
    struct stream *s = open_stream(*state);
    struct expert_cache *c = open_cache(s, 8);
    struct err e = ERR_INIT;
    struct expert_weights w;
    uint64_t stall = 0, before;

    memset(use, 1, sizes.n_all);
    for (uint32_t l = 0, at = 0; l < LAYERS; at += layers[l++].n_expert)
        for (uint32_t i = 0; layers[l].n_expert > 0 && i < 3; i++)
            use[at + favourite[i]] = 200;
    assert_false(expert_cache_warm(c)); /* it knows nothing */
    expert_cache_seed(c, use);
    while (expert_cache_warm(c))
        continue;
    assert_int_equal(counter_get(&telemetry.expert_held), 8);
    assert_int_equal(counter_get(&telemetry.expert_hits), 0);
    before = counter_get(&telemetry.bytes_read);
    expert_cache_begin(c, 0, 1, favourite, n_choice, 3);
    for (int i = 0; i < 3; i++) {
        no_error(expert_cache_next(c, 3, &w, &stall, &e), &e);
        check_weights(0, &w);
        expert_cache_give(c);
    }
    /* 9 favourites, and 8 slots: at least two of each layer */
    assert_true(counter_get(&telemetry.expert_hits) >= 2);
    assert_true(counter_get(&telemetry.bytes_read) - before < 32768);
    assert_false(expert_cache_warm(c));
    expert_cache_uses(c, after);
    assert_true(after[3] > after[4] && after[3] == 255);
    run_passes(c, 40);
    expert_cache_close(c);
    stream_close(s);
}

/* A smaller cache, or a disk that fails, ends it without an error. */
static void favourites_that_do_not_fit_are_left_out(void **state)
{
    uint8_t use[LAYERS * EXPERTS];
    struct stream *s = open_stream(*state);
    struct expert_cache *c = open_cache(s, 30);
    struct err e = ERR_INIT;

    memset(use, 9, sizeof use);
    expert_cache_seed(c, use);
    assert_true(expert_cache_warm(c));
    no_error(expert_cache_set_memory(c, 3 * sizes.slot_bytes, &e), &e);
    while (expert_cache_warm(c))
        continue;
    run_passes(c, 10);
    expert_cache_close(c);
    stream_close(s);
}

int main(void)
{
    static struct CMUnitTest tests[64];
    static char names[64][96];
    size_t n = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        const struct CMUnitTest here[] = {
            cmocka_unit_test_prestate_setup_teardown(every_size_returns_the_bytes_of_the_files,
                                                     set_up, tear_down, &modes[i]),
            cmocka_unit_test_prestate_setup_teardown(the_size_changes_between_passes, set_up,
                                                     tear_down, &modes[i]),
            cmocka_unit_test_prestate_setup_teardown(experts_in_memory_are_not_read, set_up,
                                                     tear_down, &modes[i]),
            cmocka_unit_test_prestate_setup_teardown(popular_experts_stay, set_up, tear_down,
                                                     &modes[i]),
            cmocka_unit_test_prestate_setup_teardown(
                favourites_are_read_before_the_first_request, set_up, tear_down, &modes[i]),
            cmocka_unit_test_prestate_setup_teardown(
                favourites_that_do_not_fit_are_left_out, set_up, tear_down, &modes[i]),
        };

        for (size_t k = 0; k < (modes[i].io == STREAM_MMAP ? 2 : 6); k++, n++) {
            tests[n] = here[k];
            snprintf(names[n], sizeof names[n], "%s: %s", here[k].name, modes[i].name);
            tests[n].name = names[n];
        }
    }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(use_is_ranked_by_popularity);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate_setup_teardown(
        memory_follows_the_size, set_up, tear_down, &modes[0]);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate_setup_teardown(
        memory_follows_the_size, set_up, tear_down, &modes[2]);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate_setup_teardown(
        a_smaller_cache_has_all_slots_that_fit, set_up, tear_down, &modes[0]);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate_setup_teardown(
        a_smaller_cache_has_all_slots_that_fit, set_up, tear_down, &modes[2]);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate_setup_teardown(
        too_little_memory_is_refused, set_up, tear_down, &modes[2]);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_expert_that_is_used_last_goes_first);
    return _cmocka_run_group_tests("experts", tests, n, NULL, NULL);
}
