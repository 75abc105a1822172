/* The vocabulary of a GGUF file, with the rules of fuzz_tokenizer_json. */
#include "config.h"

#include "engine/text/chat_format.h"
#include "engine/text/tokenizer.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/fuzz_vocab_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = fuzz_file(data, size);
    struct catalogue *c = NULL;
    struct tokenizer *t = NULL;
    struct chat_choice *choice = NULL;
    struct err e = ERR_INIT;
    uint32_t stop[64];
    char path[40];

    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (catalogue_open_bare(&c, path, &e) != 0)
        return 0;
    if (tokenizer_open(&t, c, &e) == 0) {
        fuzz_check_tokenizer(t, (const char *)data, size);
        if (chat_choose(&choice, c, t, NULL, &e) != 0 && e.what[0] == '\0')
            abort();
        if (chat_stop_ids(c, t, choice != NULL ? chat_choice_format(choice) : NULL, stop, 64) >
            64)
            abort();
        chat_choice_free(choice);
        tokenizer_close(t);
    } else if (t != NULL || e.code == ERR_NONE || e.what[0] == '\0') {
        abort();
    }
    catalogue_close(c);
    return 0;
}
