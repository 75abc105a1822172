/* Names of models on a hub: repository, revision and file never leave their folders. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hub/repo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const endpoints[] = { "https://huggingface.co", "http://x:1/y", NULL };
    char *text = malloc(size + 1);
    struct repo r;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < 3; i++) {
        struct err e = ERR_INIT;

        if (repo_parse(&r, text, NULL, endpoints[i], &e) != 0) {
            if (e.code != ERR_ARGUMENT || e.what[0] == '\0')
                abort();
        } else if (!cache_is_repo(r.name) || !cache_is_file(r.revision) ||
                   (r.variant[0] != '\0' && !cache_is_file(r.variant))) {
            abort();
        }
    }
    free(text);
    return 0;
}
