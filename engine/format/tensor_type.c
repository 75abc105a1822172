#include "config.h"

#include "engine/format/tensor_type.h"

#include <stdio.h>

/* clang-format off */
static const struct tensor_type_info types[TYPE_COUNT] = {
    [TYPE_F32]     = { "F32",       1,   4, true  },
    [TYPE_F16]     = { "F16",       1,   2, true  },
    [TYPE_Q4_0]    = { "Q4_0",     32,  18, true  },
    [TYPE_Q4_1]    = { "Q4_1",     32,  20, true  },
    [4]            = { "Q4_2",      0,   0, false },
    [5]            = { "Q4_3",      0,   0, false },
    [TYPE_Q5_0]    = { "Q5_0",     32,  22, true  },
    [TYPE_Q5_1]    = { "Q5_1",     32,  24, true  },
    [TYPE_Q8_0]    = { "Q8_0",     32,  34, true  },
    [TYPE_Q8_1]    = { "Q8_1",     32,  36, false },
    [TYPE_Q2_K]    = { "Q2_K",    256,  84, true  },
    [TYPE_Q3_K]    = { "Q3_K",    256, 110, true  },
    [TYPE_Q4_K]    = { "Q4_K",    256, 144, true  },
    [TYPE_Q5_K]    = { "Q5_K",    256, 176, true  },
    [TYPE_Q6_K]    = { "Q6_K",    256, 210, true  },
    [TYPE_Q8_K]    = { "Q8_K",    256, 292, false },
    [TYPE_IQ2_XXS] = { "IQ2_XXS", 256,  66, false },
    [TYPE_IQ2_XS]  = { "IQ2_XS",  256,  74, false },
    [TYPE_IQ3_XXS] = { "IQ3_XXS", 256,  98, false },
    [TYPE_IQ1_S]   = { "IQ1_S",   256,  50, false },
    [TYPE_IQ4_NL]  = { "IQ4_NL",   32,  18, true  },
    [TYPE_IQ3_S]   = { "IQ3_S",   256, 110, false },
    [TYPE_IQ2_S]   = { "IQ2_S",   256,  82, false },
    [TYPE_IQ4_XS]  = { "IQ4_XS",  256, 136, true  },
    [TYPE_I8]      = { "I8",        1,   1, false },
    [TYPE_I16]     = { "I16",       1,   2, false },
    [TYPE_I32]     = { "I32",       1,   4, false },
    [TYPE_I64]     = { "I64",       1,   8, false },
    [TYPE_F64]     = { "F64",       1,   8, false },
    [TYPE_IQ1_M]   = { "IQ1_M",   256,  56, false },
    [TYPE_BF16]    = { "BF16",      1,   2, true  },
    [31]           = { "Q4_0_4_4",  0,   0, false },
    [32]           = { "Q4_0_4_8",  0,   0, false },
    [33]           = { "Q4_0_8_8",  0,   0, false },
    [TYPE_TQ1_0]   = { "TQ1_0",   256,  54, false },
    [TYPE_TQ2_0]   = { "TQ2_0",   256,  66, false },
    [36]           = { "IQ4_NL_4_4", 0,  0, false },
    [37]           = { "IQ4_NL_4_8", 0,  0, false },
    [38]           = { "IQ4_NL_8_8", 0,  0, false },
    [TYPE_MXFP4]   = { "MXFP4",    32,  17, false },
    [TYPE_NVFP4]   = { "NVFP4",    64,  36, false },
    [TYPE_Q1_0]    = { "Q1_0",    128,  18, false },
    [TYPE_Q2_0]    = { "Q2_0",     64,  18, false },
};
/* clang-format on */

const struct tensor_type_info *tensor_type_info(uint32_t id)
{
    return id < TYPE_COUNT ? &types[id] : NULL;
}

uint64_t tensor_row_bytes(enum tensor_type type, uint64_t n)
{
    const struct tensor_type_info *t = &types[type];

    return n / t->block_elems * t->block_bytes;
}

void tensor_types_computed(char *buf, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < TYPE_COUNT && used < n; i++)
        if (types[i].is_computed)
            used += (size_t)snprintf(buf + used, n - used, "%s%s", used > 0 ? ", " : "",
                                     types[i].name);
}
