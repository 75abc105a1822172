#include "config.h"

#include "engine/machine/program.h"

#include <sys/auxv.h>
#include <sys/stat.h>

#include <link.h>
#include <stddef.h>
#include <unistd.h>

static uint64_t whole_pages(uint64_t n)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (n + page - 1) / page * page;
}

/* Returns the segments of an object whose file no longer exists. */
static uint64_t segment_bytes(const struct dl_phdr_info *object)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD)
            bytes += whole_pages(object->dlpi_phdr[i].p_filesz);
    return bytes;
}

static int add_object(struct dl_phdr_info *object, size_t size, void *ctx)
{
    const char *path = object->dlpi_name;
    uint64_t *bytes = ctx;
    struct stat st;

    (void)size;
    if (path == NULL || path[0] == '\0') { /* the program itself */
        unsigned long at = getauxval(AT_EXECFN);

        path = at != 0 ? (const char *)at : ""; /* NOLINT(performance-no-int-to-ptr) */
    }
    if (path[0] != '\0' && stat(path, &st) == 0 && S_ISREG(st.st_mode))
        *bytes += whole_pages((uint64_t)st.st_size);
    else
        *bytes += segment_bytes(object);
    return 0;
}

uint64_t program_file_bytes(void)
{
    uint64_t bytes = 0;

    dl_iterate_phdr(add_object, &bytes);
    return bytes;
}
