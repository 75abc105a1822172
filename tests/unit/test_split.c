/* How the vocabularies of each family cut text, by the name that its GGUF files state.  The
 * pieces are those of the patterns in the tokenizer.json of the models, which another engine
 * applied. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/format/vocab_rules.h"
#include "engine/text/split.h"

static const char text[] =
    "He'LL 1234 aBcDe\u0301 \u4e2d\u6587\u304b\u306a\ud55c\u2163;\r\n\r\n"
    "\tx_y.\n\n  //\n";

/* The same text with a bar between two pieces. */
#define END   "|;\r\n\r\n|\tx|_y|.\n\n| | //\n"
#define CJK   "\u4e2d\u6587\u304b\u306a\ud55c|\u2163"
#define LLAMA "He|'LL| |123|4| aBcDe|\u0301| " CJK END
#define QWEN2 "He|'LL| |1|2|3|4| aBcDe|\u0301| " CJK END
#define LINES "He|'LL| |1|2|3|4| aBcDe|\u0301| " CJK "|;|\r\n\r\n|\tx|_y|.|\n\n| | //|\n"
#define QWEN4 "He|'LL| |1|2|3|4| aBcDe\u0301| " CJK END
#define GPT2  "He|'|LL| 1234| aBcDe|\u0301| " CJK "|;|\r\n\r\n|\t|x|_|y|.|\n\n | //|\n"
#define DIGIT "He|'|LL| |1|2|3|4| aBcDe|\u0301| " CJK "|;|\r\n\r\n|\t|x|_|y|.|\n\n | //|\n"
#define GPT4O "He'LL| |123|4| a|Bc|De\u0301| " CJK END
#define KIMI  "He'LL| |123|4| a|Bc|De\u0301| |\u4e2d\u6587|\u304b\u306a\ud55c|\u2163" END
#define EXA45                                                                                  \
    "He|'LL| |1|2|3|4| aBcDe\u0301 " CJK "|;\r|\n\r\n|\tx|_y|.\n|\n| | //\n"
#define DEEP3 "He|'LL| |123|4| aBcDe\u0301| |\u4e2d\u6587\u304b\u306a|\ud55c|\u2163" END
#define DEEP2 "He|'|LL| |1|2|3|4| aBcDe|\u0301 |" CJK "|;|\r|\n|\r|\n|\tx|_|y|.|\n|\n| | //|\n"

static const struct {
    const char *family, *pre, *pieces;
} rows[] = {
    { "AFM", "llama-bpe", LLAMA },
    { "Command R7B", "command-r", DIGIT },
    { "DeepSeek V2", "deepseek-llm", DEEP2 },
    { "DeepSeek V3, V4", "deepseek-v3", DEEP3 },
    { "EXAONE 4", "exaone4", GPT2 },
    { "EXAONE 4.5", "exaone-moe", EXA45 },
    { "Falcon-H1", "falcon-h1", LLAMA },
    { "GLM 4.5 to 5.3", "glm4", LLAMA },
    { "Granite 3", "refact", DIGIT },
    { "Granite 4", "dbrx", LLAMA },
    { "Hunyuan, dense", "hunyuan-dense", DEEP3 },
    { "Hunyuan A13B", "hunyuan", QWEN2 },
    { "Kimi K2, Linear", "kimi-k2", KIMI },
    { "Laguna", "laguna", LINES },
    { "LFM2", "lfm2", LLAMA },
    { "Ling 1", "bailingmoe", QWEN2 },
    { "Ling 2, 3", "bailingmoe2", QWEN2 },
    { "LLaDA", "llada-moe", QWEN2 },
    { "Mellum 2", "mellum2", DIGIT },
    { "MiniMax M2", "minimax-m2", GPT4O },
    { "Muse Glimmer", "llama4", GPT4O },
    { "Nemotron 3", "pixtral", LLAMA },
    { "OLMoE", "olmo", GPT2 },
    { "Qwen 1.5 MoE", "qwen2", QWEN2 },
    { "Qwen 3.8-Flash-Next", "qwen35", QWEN4 },
    { "Seed-OSS", "seed-coder", LINES },
};

static int joins(void *ctx, const char *piece, size_t len, struct err *e)
{
    char *out = ctx;

    (void)e;
    if (out[0] != '\0')
        strcat(out, "|");
    strncat(out, piece, len);
    return 0;
}

static void the_name_of_each_family_cuts_like_its_patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct vocab_info info = { 0 };
        struct err e = ERR_INIT;
        struct split *s = NULL;
        char out[4 * sizeof text] = "";

        if (!vocab_pre_name(&info, rows[i].pre) || split_new(&s, info.pre, &e) != 0)
            fail_msg("%s: unknown name %s", rows[i].family, rows[i].pre);
        assert_int_equal(split_text(s, text, sizeof text - 1, joins, out, &e), 0);
        if (strcmp(out, rows[i].pieces) != 0)
            fail_msg("%s:\n%s\ninstead of\n%s", rows[i].family, out, rows[i].pieces);
        split_free(s);
    }
}

static void an_unknown_name_is_not_known(void **state)
{
    struct vocab_info info = { 0 };

    (void)state;
    assert_false(vocab_pre_name(&info, "bailingmoe9"));
    assert_false(vocab_pre_name(&info, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_of_each_family_cuts_like_its_patterns),
        cmocka_unit_test(an_unknown_name_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
