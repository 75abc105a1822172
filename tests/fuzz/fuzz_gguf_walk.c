/* The length of a GGUF header: the same however the bytes arrive, and that of the reader. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/gguf.h"
#include "engine/hub/gguf_walk.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_walk all = { .p = data, .n = size }, pieces = { .p = data };
    struct gguf *g = NULL;
    struct err e = ERR_INIT;
    int fd = fuzz_file(data, size);

    gguf_walk_on(&all);
    if (gguf_walk_is_model(data, size) && (size < 24 || memcmp(data, "GGUF", 4) != 0))
        abort();
    for (size_t step = 1; pieces.n < size && !pieces.is_bad && !pieces.is_done; step += 7) {
        pieces.n = size - pieces.n < step ? size : pieces.n + step;
        gguf_walk_on(&pieces);
    }
    if (all.is_done != pieces.is_done || all.is_bad != pieces.is_bad ||
        (all.is_done && (all.at != pieces.at || all.tensors > all.at || all.at > size)))
        abort();
    if (fd >= 0 && gguf_read(&g, fd, size, NULL, &e) == 0 &&
        (!all.is_done || all.n_tensor != g->n_tensor || all.at > g->data_start))
        abort();
    gguf_free(g);
    return 0;
}
