/* Repositories as people name them: names, pasted addresses, commands of other programs. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/hub/repo.h"
#include "engine/memwall.h"

#define HUB "https://huggingface.co"

struct row {
    const char *text, *name, *revision, *variant;
};

static void check(const struct row *rows, size_t n, const char *endpoint)
{
    for (size_t i = 0; i < n; i++) {
        struct err e = ERR_INIT;
        struct repo r;

        if (repo_parse(&r, rows[i].text, NULL, endpoint, &e) != 0)
            fail_msg("%s: %s", rows[i].text, e.what);
        if (strcmp(r.name, rows[i].name) != 0 || strcmp(r.revision, rows[i].revision) != 0 ||
            strcmp(r.variant, rows[i].variant) != 0)
            fail_msg("%s: \"%s\" at \"%s\", \"%s\"", rows[i].text, r.name, r.revision,
                     r.variant);
    }
}

static void check_refused(const char *text, const char *says)
{
    struct err e = ERR_INIT;
    struct repo r;

    if (repo_parse(&r, text, NULL, HUB, &e) == 0)
        fail_msg("%s: %s %s", text, r.name, r.variant);
    assert_int_equal(e.code, ERR_ARGUMENT);
    if (strstr(e.what, says) == NULL)
        fail_msg("%s: %s", text, e.what);
}

static void addresses_name_repository_revision_and_file(void **state)
{
    static const struct row rows[] = {
        { "org/name", "org/name", "main", "" },
        { "org/name:Q4_0", "org/name", "main", "Q4_0" },
        { "org/name:sub/x.gguf", "org/name", "main", "sub/x.gguf" },
        { "org/name:a b.gguf", "org/name", "main", "a b.gguf" },
        { "org/name/", "org/name", "main", "" },
        { " org/name\n", "org/name", "main", "" },
        { "\xef\xbb\xbforg/name\r\n", "org/name", "main", "" },
        { "\"org/name\"", "org/name", "main", "" },
        { "org/name@v1", "org/name", "v1", "" },
        { "org/name/tree/v1/sub", "org/name", "v1", "sub" },
        { "gpt2", "gpt2", "main", "" },
        { HUB "/org/name", "org/name", "main", "" },
        { HUB "/org/name/", "org/name", "main", "" },
        { HUB "//org//name//", "org/name", "main", "" },
        { HUB "/org/name:Q4_0", "org/name", "main", "Q4_0" },
        { HUB "/org/name?library=gguf#files", "org/name", "main", "" },
        { HUB "/org/name?show_file_info=a%20b-Q4_0.gguf&x=y", "org/name", "main",
          "a b-Q4_0.gguf" },
        { HUB "/org/name.git", "org/name", "main", "" },
        { HUB "/org/name/tree/main", "org/name", "main", "" },
        { HUB "/org/name/tree/main/", "org/name", "main", "" },
        { HUB "/org/name/tree/v1.0/BF16", "org/name", "v1.0", "BF16" },
        { HUB "/org/name/tree/refs%2Fpr%2F1", "org/name", "refs/pr/1", "" },
        { HUB "/org/name/tree/refs/pr/1/sub", "org/name", "refs/pr/1", "sub" },
        { HUB "/org/name/blob/main/x-Q8_0.gguf", "org/name", "main", "x-Q8_0.gguf" },
        { HUB "/org/name/blob/main/sub/x%20y.gguf", "org/name", "main", "sub/x y.gguf" },
        { HUB "/org/name/blob/main/sub%2fx.gguf", "org/name", "main", "sub/x.gguf" },
        { HUB "/org/name/resolve/main/x.gguf?download=true", "org/name", "main", "x.gguf" },
        { HUB "/org/name/raw/0123abcd/config.json", "org/name", "0123abcd", "config.json" },
        { HUB "/org/name/blame/main/x.gguf", "org/name", "main", "x.gguf" },
        { HUB "/org/name/commit/0123abcd", "org/name", "0123abcd", "" },
        { HUB "/org/name/commits/main", "org/name", "main", "" },
        { HUB "/org/name/discussions/12", "org/name", "main", "" },
        { HUB "/org/name/discussions", "org/name", "main", "" },
        { HUB "/models/org/name", "org/name", "main", "" },
        { HUB "/api/models/org/name/tree/main", "org/name", "main", "" },
        { HUB "/gpt2/tree/main", "gpt2", "main", "" },
        { HUB "/gpt2/blob/main/model.safetensors", "gpt2", "main", "model.safetensors" },
        { "HTTPS://HuggingFace.co/org/name/tree/main", "org/name", "main", "" },
        { "http://www.huggingface.co/org/name", "org/name", "main", "" },
        { HUB ":443/org/name", "org/name", "main", "" },
        { "https://hf.co/org/name", "org/name", "main", "" },
        { "huggingface.co/org/name/blob/main/x.gguf", "org/name", "main", "x.gguf" },
        { "hf.co/org/name:Q4_K_M", "org/name", "main", "Q4_K_M" },
        { "hf.co/org/name:latest", "org/name", "main", "" },
        { "<" HUB "/org/name>", "org/name", "main", "" },
        { "hf://org/name", "org/name", "main", "" },
        { "hf://org/name/sub/x.gguf", "org/name", "main", "sub/x.gguf" },
        { "hf://org/name@v1/x.gguf", "org/name", "v1", "x.gguf" },
        { "git@hf.co:org/name", "org/name", "main", "" },
        { "ssh://git@hf.co/org/name.git", "org/name", "main", "" },
        { "org/name/x.gguf", "org/name", "main", "x.gguf" },
        { "org/name/sub/x.gguf", "org/name", "main", "sub/x.gguf" },
        { "hf.co/org/name/x.gguf", "org/name", "main", "x.gguf" },
        { "org/name@q8_0", "org/name", "main", "q8_0" },
        { HUB "/org/name@Q4_K_M", "org/name", "main", "Q4_K_M" },
        { "hf:org/name:Q4_K_M", "org/name", "main", "Q4_K_M" },
        { "hf:org/name/x.gguf", "org/name", "main", "x.gguf" },
        { "huggingface://org/name/x.gguf", "org/name", "main", "x.gguf" },
        { "gpt2:safetensors", "gpt2", "main", "safetensors" },
        { "gpt2:q8_0", "gpt2", "main", "q8_0" },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], HUB);
    /* A mirror of the hub takes them, too. */
    check(rows, sizeof rows / sizeof rows[0], "https://mirror.example:8443/hf");
}

static void addresses_of_the_endpoint_are_taken(void **state)
{
    static const struct row rows[] = {
        { "https://mirror.example:8443/hf/org/name/tree/v1", "org/name", "v1", "" },
        { "mirror.example:8443/hf/org/name/blob/main/x.gguf", "org/name", "main", "x.gguf" },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], "https://mirror.example:8443/hf");
}

static void marks_of_a_text_around_an_address_are_dropped(void **state)
{
    static const struct row rows[] = {
        { "[x](" HUB "/org/name)", "org/name", "main", "" },
        { "[My model](" HUB "/org/name/tree/v1) is good", "org/name", "v1", "" },
        { "see [hf.co/org/name](hf.co/org/name).", "org/name", "main", "" },
        { HUB "/org/name.", "org/name", "main", "" },
        { HUB "/org/name/blob/main/x.gguf).", "org/name", "main", "x.gguf" },
        { "(" HUB "/org/name),", "org/name", "main", "" },
        { HUB "/org/name!", "org/name", "main", "" },
        { "org/name.", "org/name", "main", "" },
        { "**org/name**", "org/name", "main", "" },
        { "see " HUB "/org/name.", "org/name", "main", "" },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], HUB);
}

/* The buttons of a model's page open other programs by such links. */
static void links_that_open_other_programs_are_read(void **state)
{
    static const struct row rows[] = {
        { "lmstudio://open_from_hf?model=org/name", "org/name", "main", "" },
        { "lmstudio://open_from_hf?model=org/name&file=x.gguf", "org/name", "main", "x.gguf" },
        { "lmstudio://open_from_hf?model=org%2Fname&file=sub%2Fx.gguf", "org/name", "main",
          "sub/x.gguf" },
        { "unsloth://open_from_hf?model=org/name", "org/name", "main", "" },
        { "recursechat://new-hf-gguf-model?hf-model-id=org/name", "org/name", "main", "" },
        { "jan://models/huggingface/org/name", "org/name", "main", "" },
        { "msty://models/search/hf/org/name", "org/name", "main", "" },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], HUB);
}

static void commands_of_other_programs_are_read(void **state)
{
    static const struct row rows[] = {
        { "hf download org/name", "org/name", "main", "" },
        { "hf download org/name x-Q4_0.gguf", "org/name", "main", "x-Q4_0.gguf" },
        { "hf download org/name _x-", "org/name", "main", "_x-" },
        { "org/name x-Q4_0.gguf", "org/name", "main", "x-Q4_0.gguf" },
        { "$ huggingface-cli download org/name sub/x.gguf --local-dir models/x --revision v1",
          "org/name", "v1", "sub/x.gguf" },
        { "huggingface-cli download --repo-type model --revision=v1 org/name", "org/name", "v1",
          "" },
        { "hf download org/name --include \"*Q4_K_M*\"", "org/name", "main", "Q4_K_M" },
        { "hf download gpt2 --quiet", "gpt2", "main", "" },
        { "ollama run hf.co/org/name:Q4_K_M", "org/name", "main", "Q4_K_M" },
        { "ollama run hf.co/org/name:Q4_K_M why is a/b blue", "org/name", "main", "Q4_K_M" },
        { "ollama pull huggingface.co/org/name", "org/name", "main", "" },
        { "llama-cli -hf org/name:Q8_0 -ngl 99", "org/name", "main", "Q8_0" },
        { "./build/bin/llama-server --hf-repo org/name --hf-file x.gguf", "org/name", "main",
          "x.gguf" },
        { "build/bin/llama-cli -hf org/name", "org/name", "main", "" },
        { "git clone " HUB "/org/name", "org/name", "main", "" },
        { "git clone --depth 1 git@hf.co:org/name", "org/name", "main", "" },
        { "wget -O x.gguf " HUB "/org/name/resolve/main/x.gguf?download=true", "org/name", "main",
          "x.gguf" },
        { "curl -L -o x " HUB "/org/name/resolve/main/x.gguf", "org/name", "main", "x.gguf" },
        { "memwall pull org/name:Q4_0 --yes", "org/name", "main", "Q4_0" },
        { "vllm serve org/name", "org/name", "main", "" },
        { "lms get org/name@q8_0", "org/name", "main", "q8_0" },
        { "lms get " HUB "/org/name@Q4_K_M", "org/name", "main", "Q4_K_M" },
        { "org/name Q4_0", "org/name", "main", "Q4_0" },
        { "org/name (Q4_0)", "org/name", "main", "Q4_0" },
        { "node-llama-cpp chat hf:org/name:Q4_K_M", "org/name", "main", "Q4_K_M" },
        { "local-ai run huggingface://org/name/x.gguf", "org/name", "main", "x.gguf" },
    };

    (void)state;
    check(rows, sizeof rows / sizeof rows[0], HUB);
}

static void other_texts_are_refused_with_what_to_type(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "", "ORG/NAME" },
        { " ", "ORG/NAME" },
        { "a/b/c", "ORG/NAME" },
        { "/org/name", "ORG/NAME" },
        { "org/name:", "Q4_0" },
        { "org/name:../x", "Q4_0" },
        { HUB "/", "ORG/NAME" },
        { HUB, "ORG/NAME" },
        { HUB "/org/name/unknown/main", "ORG/NAME" },
        { HUB "/org/name/blob/main/../../x", "Q4_0" },
        { HUB "/org/name/blob/main/%2e%2e%2fx", "Q4_0" },
        { HUB "/org/name/blob/main/a%0ab", "Q4_0" },
        { HUB "/org/name/blob/main/a%00b", "ORG/NAME" },
        { HUB "/org/name/blob/main/a%zz", "ORG/NAME" },
        { HUB "/org/name/tree/..%2f..%2fx", "revision" },
        { HUB "/datasets/org/name", "a dataset, not a model" },
        { HUB "/spaces/org/name", "a space, not a model" },
        { HUB "/collections/org/name-1", "a collection, not a model" },
        { "https://modelscope.cn/models/org/name/files", "give ORG/NAME, for example org/name," },
        { "https://mirror.example/org/name/tree/main", "give ORG/NAME, for example org/name," },
        { "https://huggingface.co.example/org/name", "\"huggingface.co.example\" is not the hub" },
        { "https://mirror.example/org/name", "give ORG/NAME, for example org/name," },
        { "mirror.example/org/name", "give ORG/NAME, for example org/name," },
        { "https://example.com/files/x.gguf", "download x.gguf with a browser" },
        { "hf download", "ORG/NAME" },
        { "org/na me", "ORG/NAME" },
        { "org/.", "ORG/NAME" },
        { "org/..", "ORG/NAME" },
        { "org/name x.gguf y.gguf", "ORG/NAME" },
        { "why is the sky blue", "ORG/NAME" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_refused(rows[i].text, rows[i].says);
}

/* Each is refused with what fetches or opens it. */
static void names_of_other_places_are_explained(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "llama3.2:1b", "\"ollama pull llama3.2:1b\"" },
        { "gemma3:latest", "\"ollama pull gemma3:latest\"" },
        { "https://ollama.com/library/llama3.2", "\"ollama pull llama3.2\"" },
        { "https://ollama.com/library/gemma3:4b", "\"ollama pull gemma3:4b\"" },
        { "https://ollama.com/library/gemma3/tags", "\"ollama pull gemma3\"" },
        { "ollama.com/library/gemma3", "\"ollama pull gemma3\"" },
        { "www.ollama.com/user/name:1b", "\"ollama pull user/name:1b\"" },
        { "registry.ollama.ai/library/gemma3:4b", "\"ollama pull gemma3:4b\"" },
        { "ollama://gemma3", "\"ollama pull gemma3\"" },
        { "ollama run gemma3", "\"ollama pull gemma3\"" },
        { "/usr/bin/ollama pull user/name", "\"ollama pull user/name\"" },
        { "https://ollama.com/search?q=x", "not a model on a hub" },
        { "https://github.com/org/name", "not a model on a hub" },
        { "github.com/org/name", "not a model on a hub" },
        { "https://github.com/org/name/blob/main/x.gguf", "open it with -m" },
        { "file:///models/x.gguf", "a file on this machine; open it with -m" },
        { "/models/x.gguf", "a file on this machine; open it with -m" },
        { "./x.gguf", "a file on this machine; open it with -m" },
        { "~/x.gguf", "a file on this machine; open it with -m" },
        { "x.gguf", "the name of a file; open one of this machine with -m" },
        { "models/x.gguf", "the name of a file; open one of this machine with -m" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[300];

        check_refused(rows[i].text, rows[i].says);
        check_refused(rows[i].text, "ORG/NAME");
        if (mw_hub_name(rows[i].text, name, sizeof name))
            fail_msg("%s: %s", rows[i].text, name);
    }
}

static void long_texts_are_refused(void **state)
{
    char *text = malloc(REPO_TEXT + 2);
    struct err e = ERR_INIT;
    struct repo r;

    (void)state;
    assert_non_null(text);
    for (size_t n = REPO_TEXT - 2; n <= REPO_TEXT; n++) {
        memset(text, '/', n);
        memcpy(text, "hf.co/a/b", 9);
        text[n] = '\0';
        repo_parse(&r, text, NULL, HUB, &e);
        for (size_t i = 9; i < n; i++)
            text[i] = i % 2 == 0 ? '/' : 'x';
        assert_int_equal(repo_parse(&r, text, NULL, HUB, &e), -1);
        memset(text, 'x', n);
        assert_int_equal(repo_parse(&r, text, NULL, HUB, &e), -1);
    }
    free(text);
}

static void an_option_wins_over_the_revision_of_an_address(void **state)
{
    struct err e = ERR_INIT;
    struct repo r;

    (void)state;
    assert_int_equal(repo_parse(&r, HUB "/org/name/tree/v1", "v2", HUB, &e), 0);
    assert_string_equal(r.revision, "v2");
}

static void an_address_becomes_a_name(void **state)
{
    char name[300];

    (void)state;
    assert_true(mw_hub_name("https://hf.co/org/name/blob/main/x-Q4_0.gguf", name, sizeof name));
    assert_string_equal(name, "org/name:x-Q4_0.gguf");
    assert_true(mw_hub_name("https://mirror.example/org/name", name, sizeof name));
    assert_string_equal(name, "org/name");
    assert_true(mw_hub_name("hf.co/org/name/blob/main/config.json", name, sizeof name));
    assert_string_equal(name, "org/name");
    assert_false(mw_hub_name("org/name", name, sizeof name));
    assert_false(mw_hub_name("./models/x.gguf", name, sizeof name));
    assert_false(mw_hub_name("models/sub/x.gguf", name, sizeof name));
    assert_false(mw_hub_name("hf.co/org/name", name, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_name_repository_revision_and_file),
        cmocka_unit_test(addresses_of_the_endpoint_are_taken),
        cmocka_unit_test(commands_of_other_programs_are_read),
        cmocka_unit_test(other_texts_are_refused_with_what_to_type),
        cmocka_unit_test(marks_of_a_text_around_an_address_are_dropped),
        cmocka_unit_test(links_that_open_other_programs_are_read),
        cmocka_unit_test(names_of_other_places_are_explained),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(an_option_wins_over_the_revision_of_an_address),
        cmocka_unit_test(an_address_becomes_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
