/* tokenizer.json: an accepted vocabulary encodes any text, its own file included. */
#include "config.h"

#include "engine/text/tokenizer.h"
#include "tests/fuzz/fuzz_folder.h"
#include "tests/fuzz/fuzz_vocab_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct catalogue c;
    struct tokenizer *t = NULL;
    struct err e = ERR_INIT;

    if (!fuzz_folder(&c, "tokenizer.json", data, size))
        return 0;
    if (tokenizer_open(&t, &c, &e) == 0) {
        fuzz_check_tokenizer(t, (const char *)data, size);
        tokenizer_close(t);
    } else if (t != NULL || e.code == ERR_NONE || e.what[0] == '\0') {
        abort();
    }
    return 0;
}
