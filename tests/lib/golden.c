#include "config.h"

#include "tests/lib/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES (1 << 18)

void golden_assert(const char *folder, const char *name, const char *text)
{
    char path[600], *expected = calloc(1, MAX_BYTES);
    FILE *f;

    assert_non_null(expected);
    snprintf(path, sizeof path, "%s/tests/data/%s/%s.txt", getenv("MW_SRCDIR"), folder, name);
    if (getenv("UPDATE_GOLDEN") != NULL) {
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
    }
    f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(expected, 1, MAX_BYTES - 1, f) > 0);
    fclose(f);
    if (strcmp(text, expected) != 0)
        fail_msg("%s has changed:\n%s", name, text);
    free(expected);
}
