#include "config.h"

#include "tests/lib/kv_folder.h"

#include <sys/resource.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char kv_folder[400], kv_path[440];

int kv_folder_begin(void **state)
{
    (void)state;
    snprintf(kv_folder, sizeof kv_folder, "%s/kv-XXXXXX", getenv("MW_BUILDDIR"));
    if (mkdtemp(kv_folder) == NULL)
        return -1;
    snprintf(kv_path, sizeof kv_path, "%s/chat.kv", kv_folder);
    return 0;
}

void kv_folder_clean(void)
{
    DIR *d = opendir(kv_folder);
    const struct dirent *f;

    if (d == NULL)
        return;
    while ((f = readdir(d)) != NULL)
        if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0)
            unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
}

int kv_folder_end(void **state)
{
    (void)state;
    kv_folder_clean();
    return rmdir(kv_folder);
}

void kv_folder_limit(unsigned long n)
{
    struct rlimit limit = { n, RLIM_INFINITY };

    signal(SIGXFSZ, n == RLIM_INFINITY ? SIG_DFL : SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
}
