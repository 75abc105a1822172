#include "config.h"

#include "tests/lib/model_copy.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/model_path.h"
#include "tests/lib/tree.h"

static char folder[64];
static pid_t owner; /* children of the test may end before it */

static void remove_folder(void)
{
    if (getpid() == owner)
        (void)tree_remove(folder);
}

/* Before Linux 6.6, files in memory cannot be opened for direct reads. */
static bool has_direct_reads(void)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Returns false if there is no use in copies. */
static bool make_folder(void)
{
    static bool is_made, is_refused;

    if (is_made || is_refused)
        return is_made;
    snprintf(folder, sizeof folder, "/dev/shm/memwall-test-XXXXXX");
    is_made = mkdtemp(folder) != NULL;
    owner = getpid();
    if (is_made && (!has_direct_reads() || atexit(remove_folder) != 0)) {
        remove_folder();
        is_made = false;
    }
    is_refused = !is_made;
    return is_made;
}

const char *model_copy(const char *name)
{
    static char copy[4416];
    char command[9000];
    const char *path = model_path(name);

    if (path == NULL || !make_folder())
        return path;
    snprintf(copy, sizeof copy, "%s/%s", folder, name);
    if (access(copy, R_OK) == 0)
        return copy;
    snprintf(command, sizeof command, "cp -RL '%s' '%s'", path, copy);
    return system(command) == 0 ? copy : path;
}
