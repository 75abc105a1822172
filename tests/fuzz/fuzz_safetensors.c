/* The header of a safetensors file: its byte ranges are in the file and fill it. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/safetensors.h"
#include "engine/format/snapshot.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t size, bytes;
};

static int on_tensor(void *ctx, const struct safetensors_entry *t, struct err *e)
{
    static const char *const names[] = { "gemma2", "gemma3", "gemma4", "llama",
                                         "phi3",   "qwen2",  "qwen3" };
    struct seen *s = ctx;
    char canonical[SAFETENSORS_MAX_NAME + 1], back[1024], prefix[40] = "";

    (void)e;
    if (t->offset > s->size || t->bytes > s->size - t->offset || t->n_dims < 1 || t->n_dims > 4)
        abort();
    if (t->bytes > 0 &&
        tensor_row_bytes(t->type, t->ne[0]) * t->ne[1] * t->ne[2] * t->ne[3] != t->bytes)
        abort();
    s->bytes += t->bytes;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (snapshot_to_canonical(arch_by_name(names[i]), t->name, canonical, sizeof canonical,
                                  prefix))
            snapshot_from_canonical(arch_by_name(names[i]), prefix, canonical, back,
                                    sizeof back);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen s = { .size = size };
    struct err e = ERR_INIT;
    uint64_t header = 0;
    int fd = fuzz_file(data, size);

    if (fd < 0)
        return 0;
    if (safetensors_read(fd, size, on_tensor, &s, &e) != 0) {
        if (e.code == ERR_NONE || e.what[0] == '\0')
            abort();
        return 0;
    }
    memcpy(&header, data, sizeof header);
    if (8 + header + s.bytes != size)
        abort();
    return 0;
}
