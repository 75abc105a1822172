/* See paths.h. */
#include "config.h"

#include "src/base/paths.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *paths_home(void)
{
    const char *h = getenv("HOME");
    const struct passwd *pw;

    if (h != NULL && h[0] == '/')
        return h;
    pw = getpwuid(getuid());
    return pw != NULL ? pw->pw_dir : NULL;
}

/* The XDG specification requires that relative names are ignored. */
static int find(char *to, size_t n, const char *variable, const char *below_home, struct err *e)
{
    const char *base = getenv(variable);
    int len;

    if (base != NULL && base[0] == '/') {
        len = snprintf(to, n, "%s/memwall", base);
    } else {
        if (paths_home() == NULL)
            return err_set(e, ERR_ARGUMENT, "neither HOME nor %s is set", variable);
        len = snprintf(to, n, "%s/%s/memwall", paths_home(), below_home);
    }
    if (len < 0 || (size_t)len >= n)
        return err_set(e, ERR_ARGUMENT, "the folder name in %s is longer than %zu bytes",
                       variable, n - 1);
    return 0;
}

int paths_find(struct paths *p, struct err *e)
{
    if (find(p->config_dir, sizeof p->config_dir, "XDG_CONFIG_HOME", ".config", e) != 0 ||
        find(p->state_dir, sizeof p->state_dir, "XDG_STATE_HOME", ".local/state", e) != 0 ||
        find(p->data_dir, sizeof p->data_dir, "XDG_DATA_HOME", ".local/share", e) != 0 ||
        find(p->cache_dir, sizeof p->cache_dir, "XDG_CACHE_HOME", ".cache", e) != 0)
        return -1;
    snprintf(p->config_file, sizeof p->config_file, "%s/config", p->config_dir);
    return 0;
}

bool paths_share_at(int i, const char *name, char *buf, size_t n)
{
    static const char *const from_program[] = { "share", "../share", "../share/memwall" };
    const int n_from = sizeof from_program / sizeof from_program[0];
    char program[PATH_MAX];
    ssize_t len;

    if (i == n_from)
        snprintf(buf, n, "%s/%s", PKGDATADIR, name);
    if (i >= n_from)
        return i == n_from;
    len = readlink("/proc/self/exe", program, sizeof program - 1);
    program[len > 0 ? len : 0] = '\0';
    if (strrchr(program, '/') != NULL)
        *strrchr(program, '/') = '\0';
    snprintf(buf, n, "%s/%s/%s", program, from_program[i], name);
    return true;
}

bool paths_share(const char *name, char *buf, size_t n)
{
    for (int i = 0; paths_share_at(i, name, buf, n); i++)
        if (access(buf, R_OK) == 0)
            return true;
    return false;
}
