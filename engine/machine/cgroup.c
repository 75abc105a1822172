#include "config.h"

#include "engine/machine/cgroup.h"

#include <sys/stat.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char no_group[] = "not in a memory control group";
static const char root_group[] = "the root group has no figures of its own";
static const char no_file[] = "not reported by this kernel";

/* Without a limit, version 1 reports the largest multiple of a page; all such values count
 * as unlimited. */
#define NO_LIMIT (UINT64_MAX >> 2)

/* ---- find the group ---- */

/* Is word one of the comma-separated words of list[0 .. n)? */
static bool has_word(const char *list, size_t n, const char *word)
{
    size_t len = strlen(word);

    for (size_t at = 0; at + len <= n; at++)
        if (strncmp(list + at, word, len) == 0 && (at == 0 || list[at - 1] == ',') &&
            (at + len == n || list[at + len] == ','))
            return true;
    return false;
}

/* Get the path from the controller's line of /proc/self/cgroup, "4:memory:/a/b", or from the
 * line of version 2, "0::/a/b", if controller is NULL.  Returns false without such a line. */
static bool group_path(const char *text, const char *controller, char *path, size_t n)
{
    for (const char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        const char *list = memchr(line, ':', len);
        const char *at =
            list != NULL ? memchr(list + 1, ':', len - (size_t)(list + 1 - line)) : NULL;

        if (at != NULL) {
            size_t words = (size_t)(at - list - 1);
            size_t path_len = len - (size_t)(at + 1 - line);
            bool hit = controller != NULL ? has_word(list + 1, words, controller)
                                          : words == 0 && line[0] == '0';

            if (hit && path_len < n) {
                memcpy(path, at + 1, path_len);
                path[path_len] = '\0';
                return true;
            }
        }
        line += len + (line[len] == '\n');
    }
    return false;
}

/* mountinfo writes a space as \040. */
static void unescape(char *s)
{
    char *to = s;

    while (*s != '\0') {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + s[3] - '0');
            s += 4;
        } else {
            *to++ = *s++;
        }
    }
    *to = '\0';
}

/* Find the mount of a type and, for version 1, of a controller, which is among the last
 * options: "31 23 0:28 /root /mount rw,… [tags] - cgroup cgroup rw,memory". */
static bool mount_of(char *text, const char *type, const char *controller, char **root,
                     char **mount)
{
    char *line_end;

    for (char *line = strtok_r(text, "\n", &line_end); line != NULL;
         line = strtok_r(NULL, "\n", &line_end)) {
        char *tail = strstr(line, " - ");
        char *word_end, *name, *options;

        if (tail == NULL)
            continue;
        *tail = '\0';
        name = strtok_r(tail + 3, " ", &word_end);
        (void)strtok_r(NULL, " ", &word_end); /* source */
        options = strtok_r(NULL, " ", &word_end);
        if (name == NULL || strcmp(name, type) != 0)
            continue;
        if (controller != NULL &&
            (options == NULL || !has_word(options, strlen(options), controller)))
            continue;
        (void)strtok_r(line, " ", &word_end); /* id, parent, device */
        (void)strtok_r(NULL, " ", &word_end);
        (void)strtok_r(NULL, " ", &word_end);
        *root = strtok_r(NULL, " ", &word_end);
        *mount = strtok_r(NULL, " ", &word_end);
        if (*root == NULL || *mount == NULL)
            continue;
        unescape(*root);
        unescape(*mount);
        return true;
    }
    return false;
}

static bool is_folder(const char *root, const char *path)
{
    char full[KERNEL_PATH_MAX];
    struct stat st;
    int n = snprintf(full, sizeof full, "%s%s", root, path);

    return n > 0 && (size_t)n < sizeof full && stat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

/*
 * Find our folder of a controller, and the mount that contains it.  The path of
 * /proc/self/cgroup is relative to the root of the hierarchy, but the mount may show only a
 * part of it (a container without its own namespace).  If the folder does not exist, the
 * mount's root is used.
 */
static bool find_folder(const char *root, const char *controller, char *folder, size_t n,
                        size_t *mount_len)
{
    char text[4 * KERNEL_FILE_MAX], path[KERNEL_PATH_MAX];
    const char *type = controller != NULL ? "cgroup" : "cgroup2";
    const char *below = path;
    char *mount_root, *mount;
    size_t root_len;
    int used;

    if (kernel_file_slurp(root, "/proc/self/cgroup", text, sizeof text) <= 0 ||
        !group_path(text, controller, path, sizeof path))
        return false;
    if (kernel_file_slurp(root, "/proc/self/mountinfo", text, sizeof text) <= 0 ||
        !mount_of(text, type, controller, &mount_root, &mount))
        return false;
    root_len = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    if (strncmp(path, mount_root, root_len) == 0)
        below = path + root_len;
    *mount_len = strlen(mount);
    used = snprintf(folder, n, "%s%s", mount, strcmp(below, "/") == 0 ? "" : below);
    if (used < 0 || (size_t)used >= n || strstr(below, "/..") != NULL ||
        !is_folder(root, folder)) {
        used = snprintf(folder, n, "%s", mount);
        return used > 0 && (size_t)used < n && is_folder(root, folder);
    }
    return true;
}

/* ---- opening ---- */

static void open_level(struct cgroup_level *l, enum cgroup_version version, const char *root,
                       const char *folder)
{
    bool v1 = version == CGROUP_V1;

    l->limit = kernel_file_open_in(root, folder, v1 ? "/memory.limit_in_bytes" : "/memory.max");
    l->high = v1 ? -1 : kernel_file_open_in(root, folder, "/memory.high");
    l->usage =
        kernel_file_open_in(root, folder, v1 ? "/memory.usage_in_bytes" : "/memory.current");
    l->stat = kernel_file_open_in(root, folder, "/memory.stat");
}

/* Open all levels from our folder up to the mount. */
static void open_levels(struct cgroup *c, const char *root)
{
    char folder[KERNEL_PATH_MAX];

    memcpy(folder, c->folder, sizeof folder);
    while (c->n_level < CGROUP_LEVELS) {
        open_level(&c->level[c->n_level++], c->version, root, folder);
        if (strlen(folder) <= c->mount_len)
            break;
        *strrchr(folder, '/') = '\0';
    }
}

/* Without /proc, use the root of the usual mount if the controller has files there. */
static bool guess_folder(struct cgroup *c, const char *root, const char *folder,
                         const char *file)
{
    int fd;

    if (kernel_file_slurp(root, "/proc/self/cgroup", (char[2]){ "" }, 2) >= 0)
        return false;
    fd = kernel_file_open_in(root, folder, file);
    if (fd < 0)
        return false;
    kernel_file_close(fd);
    c->mount_len = (size_t)snprintf(c->folder, sizeof c->folder, "%s", folder);
    return true;
}

void cgroup_open(struct cgroup *c, const char *root)
{
    *c = (struct cgroup){
        .peak = -1, .kernel = -1, .procs = -1, .pressure_memory = -1, .pressure_io = -1
    };
    /* Both versions may be mounted, but a controller belongs to only one of them. */
    if (find_folder(root, "memory", c->folder, sizeof c->folder, &c->mount_len) ||
        guess_folder(c, root, "/sys/fs/cgroup/memory", "/memory.limit_in_bytes"))
        c->version = CGROUP_V1;
    else if (find_folder(root, NULL, c->folder, sizeof c->folder, &c->mount_len) ||
             guess_folder(c, root, "/sys/fs/cgroup", "/memory.max"))
        c->version = CGROUP_V2;
    else
        return;
    open_levels(c, root);
    c->procs = kernel_file_open_in(root, c->folder, "/cgroup.procs");
    if (c->version == CGROUP_V1) {
        c->peak = kernel_file_open_in(root, c->folder, "/memory.max_usage_in_bytes");
        c->kernel = kernel_file_open_in(root, c->folder, "/memory.kmem.usage_in_bytes");
        return;
    }
    c->peak = kernel_file_open_in(root, c->folder, "/memory.peak");
    c->pressure_memory = kernel_file_open_in(root, c->folder, "/memory.pressure");
    c->pressure_io = kernel_file_open_in(root, c->folder, "/io.pressure");
}

static void shut(int *fd)
{
    kernel_file_close(*fd);
    *fd = -1;
}

void cgroup_close(struct cgroup *c)
{
    for (int i = 0; i < c->n_level; i++) {
        shut(&c->level[i].limit);
        shut(&c->level[i].high);
        shut(&c->level[i].usage);
        shut(&c->level[i].stat);
    }
    shut(&c->peak);
    shut(&c->kernel);
    shut(&c->procs);
    shut(&c->pressure_memory);
    shut(&c->pressure_io);
    c->n_level = 0;
    c->version = CGROUP_NONE;
}

/* ---- reading ---- */

static struct mw_os_value number(int fd, const char *why_not)
{
    uint64_t value;

    return kernel_file_number(fd, &value) ? os_value(value) : os_unknown(why_not);
}

static uint64_t level_limit(const struct cgroup_level *l, bool *is_high)
{
    uint64_t limit = UINT64_MAX, high = UINT64_MAX;

    if (!kernel_file_number(l->limit, &limit))
        limit = UINT64_MAX;
    if (!kernel_file_number(l->high, &high))
        high = UINT64_MAX;
    *is_high = high < limit;
    return *is_high ? high : limit;
}

/* Returns the bytes of file cache that Linux can drop at once, and half of the kernel's caches
 * of names and files, of which pages in use stay.  Version 1 does not report the latter here.
 */
static uint64_t droppable(const struct cgroup_level *l, enum cgroup_version version)
{
    char text[KERNEL_FILE_MAX];
    bool v1 = version == CGROUP_V1;
    uint64_t inactive = 0, active = 0, slab = 0;

    if (l->stat < 0 || kernel_file_read(l->stat, text, sizeof text) <= 0)
        return 0;
    kernel_file_field(text, v1 ? "total_inactive_file" : "inactive_file", &inactive);
    kernel_file_field(text, v1 ? "total_active_file" : "active_file", &active);
    if (!v1)
        kernel_file_field(text, "slab_reclaimable", &slab);
    return inactive + active + slab / 2;
}

static void read_limits(const struct cgroup *c, struct cgroup_memory *out)
{
    uint64_t limit = UINT64_MAX, room = UINT64_MAX;

    for (int i = 0; i < c->n_level; i++) {
        bool is_high;
        uint64_t here = level_limit(&c->level[i], &is_high), usage, cache, rest;

        limit = here < limit ? here : limit;
        if (here >= NO_LIMIT || !kernel_file_number(c->level[i].usage, &usage))
            continue;
        cache = droppable(&c->level[i], c->version);
        usage -= cache < usage ? cache : usage;
        rest = here > usage ? here - usage : 0;
        if (rest < room) {
            room = rest;
            out->tightest = (struct cgroup_tightest){ i, is_high, here };
        }
    }
    out->limit = limit < NO_LIMIT ? os_value(limit) : os_unknown("no limit is set");
    out->room = room < NO_LIMIT ? os_value(room) : os_unknown("no limit is set");
}

/* Is no other process in the group?  cgroup.procs has a line for each.  (Version 2 shows 0
 * for a process of another namespace; that is a line too.) */
static bool is_alone(const struct cgroup *c)
{
    char text[64];
    long n = c->procs >= 0 ? kernel_file_read(c->procs, text, sizeof text) : -1;

    return n > 0 && strchr(text, '\n') == strrchr(text, '\n') &&
           isdigit((unsigned char)text[0]);
}

void cgroup_read_memory(const struct cgroup *c, struct cgroup_memory *out)
{
    char text[KERNEL_FILE_MAX];
    uint64_t value;

    if (c->version == CGROUP_NONE) {
        struct mw_os_value none = os_unknown(no_group);

        *out = (struct cgroup_memory){ none, none, none, none, none, none, none, false, { 0 } };
        return;
    }
    out->tightest = (struct cgroup_tightest){ 0 };
    out->charged = number(c->level[0].usage, c->n_level == 1 ? root_group : no_file);
    out->peak = number(c->peak, c->n_level == 1 ? root_group : no_file);
    read_limits(c, out);
    out->is_alone = is_alone(c);
    out->kernel = number(c->kernel, no_file);
    out->refaults = out->file = os_unknown(no_file);
    if (c->level[0].stat < 0 || kernel_file_read(c->level[0].stat, text, sizeof text) <= 0)
        return;
    if (c->version == CGROUP_V2 && kernel_file_field(text, "kernel", &value))
        out->kernel = os_value(value);
    if (kernel_file_field(text, c->version == CGROUP_V1 ? "cache" : "file", &value))
        out->file = os_value(value);
    if (kernel_file_field(text, "workingset_refault_file", &value))
        out->refaults = os_value(value);
}

void cgroup_level_name(const struct cgroup *c, int level, char *buf, size_t n)
{
    size_t len = strlen(c->folder);

    for (int i = 0; i < level; i++)
        while (len > c->mount_len && c->folder[--len] != '/')
            ;
    if (len > c->mount_len)
        snprintf(buf, n, "%.*s", (int)(len - c->mount_len), c->folder + c->mount_len);
    else
        snprintf(buf, n, "/");
}

/* ---- CPUs ---- */

/* Returns the quota of a level divided by its period; 0: no quota; -1: unknown. */
static double level_quota(const char *root, const char *folder, bool v1)
{
    char path[KERNEL_PATH_MAX + 32], text[64];
    long long quota = -1, period = 0;

    snprintf(path, sizeof path, "%s%s", folder, v1 ? "/cpu.cfs_quota_us" : "/cpu.max");
    if (kernel_file_slurp(root, path, text, sizeof text) <= 0)
        return -1;
    if (!v1) {
        if (sscanf(text, "%lld %lld", &quota, &period) != 2)
            return strncmp(text, "max", 3) == 0 ? 0 : -1;
    } else {
        quota = strtoll(text, NULL, 10);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (kernel_file_slurp(root, path, text, sizeof text) <= 0)
            return -1;
        period = strtoll(text, NULL, 10);
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* Find the folder of our group of CPUs. */
static bool find_cpu_folder(const char *root, char folder[KERNEL_PATH_MAX], size_t *mount_len,
                            bool *v1)
{
    *v1 = find_folder(root, "cpu", folder, KERNEL_PATH_MAX, mount_len);
    return *v1 || find_folder(root, NULL, folder, KERNEL_PATH_MAX, mount_len);
}

/* Go to the group above.  Returns false at the top. */
static bool climb(char *folder, size_t mount_len)
{
    if (strlen(folder) <= mount_len)
        return false;
    *strrchr(folder, '/') = '\0';
    return true;
}

double cgroup_cpu_quota(const char *root)
{
    char folder[KERNEL_PATH_MAX];
    size_t mount_len;
    double least = -1;
    bool v1;

    if (!find_cpu_folder(root, folder, &mount_len, &v1))
        return -1;
    do {
        double here = level_quota(root, folder, v1);

        if (here > 0 ? least <= 0 || here < least : here > least && least < 0)
            least = here;
    } while (climb(folder, mount_len));
    return least;
}

double cgroup_cpu_throttled(const char *root)
{
    char folder[KERNEL_PATH_MAX], path[KERNEL_PATH_MAX + 32], text[1024];
    double times = -1;
    size_t mount_len;
    uint64_t here;
    bool v1;

    if (!find_cpu_folder(root, folder, &mount_len, &v1))
        return -1;
    do {
        snprintf(path, sizeof path, "%s/cpu.stat", folder);
        if (kernel_file_slurp(root, path, text, sizeof text) > 0 &&
            kernel_file_field(text, "nr_throttled", &here))
            times = (times < 0 ? 0 : times) + (double)here;
    } while (climb(folder, mount_len));
    return times;
}
