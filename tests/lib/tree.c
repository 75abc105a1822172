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

char tree_root[512];

int tree_make(void **state)
{
    const char *folder = getenv("TMPDIR");

    (void)state;
    snprintf(tree_root, sizeof tree_root, "%s/memwall-test-XXXXXX",
             folder != NULL ? folder : "/tmp");
    return mkdtemp(tree_root) != NULL ? 0 : -1;
}

const char *tree_path(const char *path)
{
    static char paths[4][1024];
    static int next;
    char *full = paths[next++ % 4];

    snprintf(full, sizeof paths[0], "%s%s", tree_root, path);
    return full;
}

void tree_put(const char *path, const char *text)
{
    char full[1024];
    FILE *f;

    snprintf(full, sizeof full, "%s", tree_path(path));
    for (char *at = full + strlen(tree_root) + 1; (at = strchr(at, '/')) != NULL; at++) {
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

int tree_remove(const char *folder)
{
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int tree_drop(void **state)
{
    (void)state;
    return tree_remove(tree_root);
}
