/* The index of a sharded snapshot: none of its names leaves the folder. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/snapshot_index.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shard_list s = { .n = 0 };
    struct err e = ERR_INIT;
    int fd = fuzz_file(data, size);

    if (fd < 0)
        return 0;
    if (snapshot_index_read(&s, fd, size, &e) == 0) {
        if (s.n == 0)
            abort();
        for (uint32_t i = 0; i < s.n; i++)
            if (s.names[i][0] == '.' || strpbrk(s.names[i], "/\\\n") != NULL)
                abort();
    } else if (e.code == ERR_NONE || e.what[0] == '\0') {
        abort();
    }
    shard_list_free(&s);
    return 0;
}
