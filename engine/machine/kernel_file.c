#include "config.h"

#include "engine/machine/kernel_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int kernel_file_open(const char *root, const char *path)
{
    return kernel_file_open_in(root, "", path);
}

int kernel_file_open_in(const char *root, const char *folder, const char *name)
{
    char full[KERNEL_PATH_MAX];
    int n = snprintf(full, sizeof full, "%s%s%s", root, folder, name);

    if (n < 0 || (size_t)n >= sizeof full)
        return -1;
    return open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

void kernel_file_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

long kernel_file_read(int fd, char *buf, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    while (used + 1 < n) {
        ssize_t got = pread(fd, buf + used, n - 1 - used, (off_t)used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    buf[used] = '\0';
    return (long)used;
}

long kernel_file_slurp(const char *root, const char *path, char *buf, size_t n)
{
    int fd = kernel_file_open(root, path);
    long got = -1;

    buf[0] = '\0';
    if (fd >= 0) {
        got = kernel_file_read(fd, buf, n);
        close(fd);
    }
    return got;
}

bool kernel_file_field(const char *text, const char *key, uint64_t *value)
{
    size_t n = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && (line[n] == ':' || line[n] == ' ')) {
            const char *at = line + n + 1;
            char *end;

            at += strspn(at, " \t");
            if (!isdigit((unsigned char)*at))
                return false;
            *value = strtoull(at, &end, 10);
            if (strncmp(end, " kB", 3) == 0)
                *value = *value > UINT64_MAX / 1024 ? UINT64_MAX : *value * 1024;
            return true;
        }
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return false;
}

bool kernel_file_number(int fd, uint64_t *value)
{
    char text[64];

    if (fd < 0 || kernel_file_read(fd, text, sizeof text) <= 0)
        return false;
    if (strncmp(text, "max", 3) == 0) {
        *value = UINT64_MAX;
        return true;
    }
    if (!isdigit((unsigned char)text[0]))
        return false;
    *value = strtoull(text, NULL, 10);
    return true;
}

struct mw_os_value os_value(uint64_t value)
{
    return (struct mw_os_value){ .value = value };
}

struct mw_os_value os_unknown(const char *why_not)
{
    return (struct mw_os_value){ .why_not = why_not };
}
