#include "config.h"

#include "tests/lib/tree.h"

#include <sys/stat.h>

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char *tree_new(void)
{
    static char path[512];
    const char *folder = getenv("TMPDIR");

    snprintf(path, sizeof path, "%s/memwall-test-XXXXXX", folder != NULL ? folder : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

void tree_put(const char *root, const char *path, const char *text)
{
    char full[1024];
    FILE *f;

    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st, (void)flag, (void)where;
    return remove(path);
}

void tree_remove(const char *root)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
