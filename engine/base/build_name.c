#include "config.h"

#include "engine/base/build_name.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"

#define ID_BYTES 8 /* of the identifier's 20 */

struct found {
    unsigned char id[ID_BYTES];
    int has_id;
};

/* Find the identifier among notes: a head, a name and a description each. */
static void read_notes(const unsigned char *at, size_t n, size_t align, struct found *out)
{
    ElfW(Nhdr) h;

    while (n >= sizeof h) {
        size_t name, all;

        memcpy(&h, at, sizeof h);
        name = sizeof h + (size_t)align_up(h.n_namesz, align);
        all = name + (size_t)align_up(h.n_descsz, align);
        if (all > n)
            return;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(at + sizeof h, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
            h.n_descsz >= ID_BYTES) {
            memcpy(out->id, at + name, ID_BYTES);
            out->has_id = 1;
        }
        at += all;
        n -= all;
    }
}

/* The first object is the program itself. */
static int read_program(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_NOTE)
            read_notes((const unsigned char *)(info->dlpi_addr + p->p_vaddr), p->p_memsz,
                       p->p_align == 8 ? 8 : 4, ctx);
    }
    return 1;
}

void build_name(char buf[BUILD_NAME_BYTES])
{
    struct found found = { .has_id = 0 };
    size_t used = (size_t)snprintf(buf, BUILD_NAME_BYTES, "%.40s", BUILD_NAME);

    dl_iterate_phdr(read_program, &found);
    if (found.has_id == 0)
        return;
    buf[used++] = ' ';
    for (size_t i = 0; i < ID_BYTES; i++)
        used += (size_t)snprintf(buf + used, BUILD_NAME_BYTES - used, "%02x", found.id[i]);
}
