/* The table of tensors: every row is complete, and names lead to their row and back. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/format/snapshot.h"
#include "engine/format/tensor_table.h"

static const char *const archs[] = { "gemma2", "gemma3", "gemma4", "llama",
                                     "phi3",   "qwen2",  "qwen3" };
#define N_ARCH (sizeof archs / sizeof archs[0])

static void every_row_has_a_name_and_a_shape(void **state)
{
    (void)state;
    for (int id = 0; id < T_COUNT; id++) {
        const struct tensor_spec *s = tensor_spec((enum tensor_id)id);

        assert_non_null(s->gguf);
        assert_int_not_equal(s->dims[0], DIM_NONE);
        /* Convolutions are vectors of short ones, and the router of a shared expert has one
         * row.  Tensors of FORM_FLAT have any number of dimensions. */
        if (id != T_DELTA_CONV && id != T_NGRAM_CONV && id != T_SHARED_ROUTER &&
            s->form != FORM_FLAT)
            assert_int_equal(s->dims[1] == DIM_NONE, s->form == FORM_VECTOR);
        /* So have matrices that consist of one for each head. */
        if (s->form != FORM_MATRIX)
            assert_int_equal(s->dims[2] != DIM_NONE, s->form == FORM_EXPERTS);
    }
}

static void a_part_comes_after_its_fused_tensor(void **state)
{
    (void)state;
    for (int id = 0; id < T_COUNT; id++) {
        const struct tensor_spec *s = tensor_spec((enum tensor_id)id);

        if (s->fused == 0)
            continue;
        assert_true((int)s->fused < id);
        assert_int_equal(tensor_spec(s->fused)->form, s->form);
        assert_int_equal(tensor_spec(s->fused)->dims[0] == s->dims[0], s->form != FORM_VECTOR);
    }
}

static void a_canonical_name_leads_to_its_row(void **state)
{
    (void)state;
    for (size_t a = 0; a < N_ARCH; a++) {
        const struct arch *arch = arch_by_name(archs[a]);

        for (int id = 0; id < T_COUNT; id++) {
            const struct tensor_spec *s = tensor_spec((enum tensor_id)id);
            enum tensor_id found;
            char name[96];
            uint32_t layer;

            if (!arch_has(arch, s->traits))
                continue;
            tensor_name(arch, (enum tensor_id)id, 3, name, sizeof name);
            found = tensor_id_of(arch, name, 4, &layer);
            assert_string_equal(tensor_spec(found)->gguf, s->gguf);
            assert_true((int)found == id || found == s->fused);
            assert_int_equal(layer, id < T_LAYER ? 0 : 3);
        }
    }
}

static void a_name_of_a_snapshot_leads_to_its_row_and_back(void **state)
{
    (void)state;
    for (size_t a = 0; a < N_ARCH; a++) {
        const struct arch *arch = arch_by_name(archs[a]);

        for (int id = 0; id < T_COUNT; id++) {
            const struct tensor_spec *s = tensor_spec((enum tensor_id)id);
            char name[96], theirs[128], back[96], prefix[40] = "";

            if (s->snapshot == NULL || !arch_has(arch, s->traits) ||
                ((s->when & FACT_HAS_EXPERTS) != 0 && arch->experts != EXPERTS_BESIDE))
                continue;
            tensor_name(arch, (enum tensor_id)id, 3, name, sizeof name);
            snapshot_from_canonical(arch, "model.", name, theirs, sizeof theirs);
            assert_string_not_equal(theirs, name);
            assert_true(snapshot_to_canonical(arch, theirs, back, sizeof back, prefix));
            assert_string_equal(back, name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_a_name_and_a_shape),
        cmocka_unit_test(a_part_comes_after_its_fused_tensor),
        cmocka_unit_test(a_canonical_name_leads_to_its_row),
        cmocka_unit_test(a_name_of_a_snapshot_leads_to_its_row_and_back),
    };

    return cmocka_run_group_tests_name("the table of tensors", tests, NULL, NULL);
}
