/*
 * Any header and any index of a KV file are read or refused, also with the right checksums.
 * Each three bytes of the input change a byte of a valid file.
 */
#include "config.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/kv/kv_file_format.h"

#define MOST    64  /* pieces */
#define N_INDEX 512 /* bytes of the index that are changed */

static char folder[] = "/dev/shm/memwall-fuzz-XXXXXX";
static char path[64], kept[64]; /* of the same file */
static struct kv_header valid;
static unsigned char valid_index[N_INDEX];

int __wrap_fstatfs(int fd, struct statfs *fs);

/* A folder in memory is refused, and one on a disk would be written and read for each input: the
 * linker calls this instead. */
int __wrap_fstatfs(int fd, struct statfs *fs)
{
    (void)fd;
    *fs = (struct statfs){ .f_type = EXT4_SUPER_MAGIC };
    return 0;
}

static void remove_all(void)
{
    (void)unlink(path);
    (void)unlink(kept);
    (void)rmdir(folder);
}

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* A file of three parts; the last one has two pieces. */
static void make_file(void)
{
    static unsigned char bytes[KV_PIECE + 100];
    static const size_t n[] = { 10, 5000, sizeof bytes };
    struct kv_file_head head = { .facts = "kv f16 f16\n", .name = "a model", .n_token = 3 };
    struct err e = ERR_INIT;
    struct kv_file *f;

    must(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file.kv", folder);
    snprintf(kept, sizeof kept, "%s/kept.kv", folder);
    atexit(remove_all);
    must(kv_file_change(&f, path, MOST, &e) == 0);
    kv_file_begin(f);
    for (int i = 0; i < 3; i++)
        must(kv_file_write(f, bytes, n[i], &e) == 0 && kv_file_end_part(f, &e) == 0);
    must(kv_file_commit(f, &head, &e) == 0);
    kv_file_close(f);
    must(link(path, kept) == 0);
}

static void read_valid(void)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    must(pread(fd, &valid, sizeof valid, 0) == (ssize_t)sizeof valid);
    must(pread(fd, valid_index, N_INDEX, (off_t)kv_slot_at(valid.index[0].slot)) == N_INDEX);
    close(fd);
}

static void write_changed(const uint8_t *data, size_t size)
{
    struct kv_header h = valid;
    unsigned char index[N_INDEX];
    size_t n;
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    memcpy(index, valid_index, N_INDEX);
    for (; size >= 3; data += 3, size -= 3) {
        size_t at = (size_t)(data[0] | data[1] << 8) % (sizeof h + N_INDEX);

        if (at < sizeof h)
            ((unsigned char *)&h)[at] = data[2];
        else
            index[at - sizeof h] = data[2];
    }
    n = h.n_part * sizeof(uint64_t) + h.n_piece * sizeof(struct kv_piece);
    h.magic = valid.magic;
    h.index[0].slot = valid.index[0].slot;
    if (n <= N_INDEX)
        h.index[0].sum = checksum(index, n);
    h.sum = kv_header_sum(&h);
    must(pwrite(fd, &h, sizeof h, 0) == (ssize_t)sizeof h);
    must(pwrite(fd, index, N_INDEX, (off_t)kv_slot_at(h.index[0].slot)) == N_INDEX);
    close(fd);
}

/* Read all parts to their ends.  The last one is long, so only some inputs ask for it. */
static void read_parts(struct kv_file *f, bool also_last)
{
    uint32_t n_part = kv_file_parts(f);
    static unsigned char bytes[4096];
    struct err e = ERR_INIT;

    must(n_part > 0 && n_part <= MOST);
    for (uint32_t i = 0; i < n_part - !also_last; i++) {
        uint64_t n = 0;

        kv_file_seek(f, i);
        while (kv_file_read(f, bytes, sizeof bytes, &e) == 0)
            must((n += sizeof bytes) <= MOST * KV_PIECE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kv_file_head head;
    struct err e = ERR_INIT;
    struct kv_file *f;

    if (path[0] == '\0') {
        make_file();
        read_valid();
    }
    write_changed(data, size);
    if (kv_file_look(path, &head, &e) == 0)
        must(strlen(head.facts) < sizeof head.facts && strlen(head.name) < sizeof head.name);
    if (kv_file_open(&f, path, MOST, &e) == 0) {
        read_parts(f, size % 8 == 1);
        kv_file_close(f);
    } else if (access(path, F_OK) != 0) {
        must(link(kept, path) == 0); /* it was damaged, and deleted */
    }
    return 0;
}
