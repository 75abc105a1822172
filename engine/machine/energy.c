/* See energy.h. */
#include "config.h"

#include "engine/machine/energy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/machine/kernel_file.h"

#define TOP "/sys/class/powercap/"

/* Read a file of one number.  Returns 0 or an errno. */
static int read_number(const char *root, const char *folder, const char *name, uint64_t *value)
{
    int fd, failed;

    errno = 0;
    fd = kernel_file_open_in(root, folder, name);
    if (fd < 0)
        return errno != 0 ? errno : ENOENT;
    failed = kernel_file_number(fd, value) ? 0 : EIO;
    kernel_file_close(fd);
    return failed;
}

static bool has_name(const char *root, const char *folder, const char *name)
{
    char path[160], text[64];

    snprintf(path, sizeof path, "%s/name", folder);
    return kernel_file_slurp(root, path, text, sizeof text) > 0 &&
           strncmp(text, name, strlen(name)) == 0;
}

/* Add a zone whose counter can be read.  Returns 0 or an errno. */
static int add_zone(struct mw_energy *m, const char *root, const char *folder)
{
    struct mw_energy_zone *z = &m->zone[m->n];
    int failed;

    if (m->n == MW_ENERGY_ZONES)
        return ENOSPC;
    snprintf(z->folder, sizeof z->folder, "%s", folder);
    failed = read_number(root, folder, "/energy_uj", &z->start_uj);
    if (failed != 0)
        return failed;
    if (read_number(root, folder, "/max_energy_range_uj", &z->range_uj) != 0)
        z->range_uj = 0;
    m->n++;
    return 0;
}

void energy_start(struct mw_energy *m, const char *root)
{
    bool is_denied = false;
    char folder[96];

    *m = (struct mw_energy){ 0 };
    for (int package = 0; package < MW_ENERGY_ZONES; package++) {
        snprintf(folder, sizeof folder, TOP "intel-rapl:%d", package);
        if (!has_name(root, folder, "package"))
            continue;
        if (add_zone(m, root, folder) != 0) {
            is_denied = true;
            continue;
        }
        for (int part = 0; part < 4; part++) {
            snprintf(folder, sizeof folder, TOP "intel-rapl:%d:%d", package, part);
            if (has_name(root, folder, "dram"))
                (void)add_zone(m, root, folder);
        }
    }
    if (m->n == 0)
        m->why_not = is_denied ? "energy counters are readable by root only"
                               : "the system reports no energy counters";
}

double energy_joules(const struct mw_energy *m, const char *root)
{
    uint64_t sum_uj = 0, now_uj;

    for (int i = 0; i < m->n; i++) {
        const struct mw_energy_zone *z = &m->zone[i];

        if (read_number(root, z->folder, "/energy_uj", &now_uj) != 0)
            return -1;
        if (now_uj < z->start_uj)
            now_uj += z->range_uj;
        if (now_uj < z->start_uj)
            return -1;
        sum_uj += now_uj - z->start_uj;
    }
    return m->n > 0 ? (double)sum_uj / 1e6 : -1;
}

void mw_energy_start(struct mw_energy *m)
{
    energy_start(m, "");
}

double mw_energy_joules(const struct mw_energy *m)
{
    return energy_joules(m, "");
}
