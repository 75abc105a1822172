/* See limit_words.h. */
#include "config.h"

#include "src/machine/limit_words.h"

const char *limit_words(enum mw_binds b)
{
    static const char *const words[MW_BINDS_COUNT] = {
        [MW_BINDS_NONE] = "something that was not measured",
        [MW_BINDS_DISK] = "reading from disk", /* weights, or rows of tables */
        [MW_BINDS_MEMORY] = "reading weights from memory",
        [MW_BINDS_COMPUTE] = "arithmetic",
        [MW_BINDS_KV] = "reading keys and values from memory",
        [MW_BINDS_SWAP] = "swapping",
        [MW_BINDS_OTHERS] = "other programs",
    };

    return words[b];
}
