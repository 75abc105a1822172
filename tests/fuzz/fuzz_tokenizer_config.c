/* tokenizer_config.json: special tokens and the chat template. */
#include "config.h"

#include "engine/format/vocab_rules.h"
#include "tests/fuzz/fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vocab_config config;
    struct catalogue c;
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t len = 0;

    if (!fuzz_folder(&c, "tokenizer_config.json", data, size))
        return 0;
    if (vocab_config_read(&c, &config, &e) != 0 && e.what[0] == '\0')
        abort();
    for (int i = 0; i < 4; i++)
        if (config.special_len[i] > VOCAB_MAX_TEXT)
            abort();
    for (uint32_t i = 0; i < config.added.n; i++)
        if (config.added.all[i].text == NULL || config.added.all[i].id == UINT32_MAX)
            abort();
    vocab_config_free(&config);
    if (vocab_chat_template(&c, &text, &len, &e) != 0 && e.what[0] == '\0')
        abort();
    if (text != NULL && (len > VOCAB_MAX_TEMPLATE || text[len] != '\0'))
        abort();
    free(text);
    return 0;
}
