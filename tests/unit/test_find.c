/* Models found in the stores of this machine, their names, and their descriptions. */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/format/split_name.h"
#include "engine/memwall.h"
#include "tests/lib/model_path.h"
#include "tests/lib/tree.h"

#define COMMIT_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define COMMIT_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define DIGEST   "7777777777777777777777777777777777777777777777777777777777777777"
#define REPO     "/hub/models--org--name"
#define OLLAMA   "/ollama/manifests/registry.ollama.ai"

static struct mw_models *models;
static size_t found[8];

static int end(void **state)
{
    (void)state;
    mw_models_free(models);
    models = NULL;
    return tree_drop(state);
}

static void link_to(const char *target, const char *name)
{
    assert_int_equal(symlink(target, tree_path(name)), 0);
}

/* A manifest of Ollama whose weights have the digest. */
static void put_manifest(const char *name, const char *digest)
{
    char text[512];

    snprintf(text, sizeof text,
             "{\"schemaVersion\":2,\"layers\":["
             "{\"mediaType\":\"application/vnd.ollama.image.license\",\"digest\":\"x\"},"
             "{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"%s\"}]}",
             digest);
    tree_put(name, text);
}

static void find(void)
{
    struct mw_place places[] = {
        { MW_STORE_GUIDE, tree_path("/guide") },
        { MW_STORE_HUB, tree_path("/hub") },
        { MW_STORE_OLLAMA, tree_path("/ollama") },
        { MW_STORE_LM_STUDIO, tree_path("/lm-studio") },
    };
    /* tree_path() has four buffers */
    char folder[1024], llama[1024], recent[1024];
    struct mw_place all[7];
    struct err e = ERR_INIT;

    memcpy(all, places, sizeof places);
    snprintf(llama, sizeof llama, "%s/llama.cpp", tree_root);
    snprintf(folder, sizeof folder, "%s/folder", tree_root);
    snprintf(recent, sizeof recent, "%s/recent", tree_root);
    all[4] = (struct mw_place){ MW_STORE_LLAMA_CPP, llama };
    all[5] = (struct mw_place){ MW_STORE_FOLDER, folder };
    all[6] = (struct mw_place){ MW_STORE_MODELS, "/nonexistent/models" };
    mw_models_free(models);
    assert_int_equal(mw_models_find(&models, &(struct mw_places){ all, 7, recent }, &e), 0);
}

/* Expect these names, sorted, with NULL at the end. */
static void expect(const char *first, ...)
{
    const char *name = first;
    size_t i = 0;
    va_list ap;

    va_start(ap, first);
    for (; name != NULL; name = va_arg(ap, const char *), i++) {
        assert_true(i < mw_models_count(models));
        assert_string_equal(mw_models_at(models, i)->name, name);
    }
    va_end(ap);
    assert_int_equal(mw_models_count(models), i);
}

static const struct mw_found *named(const char *name)
{
    assert_int_equal(mw_models_match(models, name, found, 8), 1);
    return mw_models_at(models, found[0]);
}

static void lists_the_models_of_every_store(void **state)
{
    (void)state;
    tree_put("/guide/memwall-guide.gguf", "guide");
    tree_put(REPO "/refs/main", COMMIT_A);
    tree_put(REPO "/blobs/1", "one");
    tree_put(REPO "/blobs/2", "two");
    tree_put(REPO "/snapshots/" COMMIT_A "/README.md", "");
    link_to("../../blobs/1", REPO "/snapshots/" COMMIT_A "/name-Q4_K_M.gguf");
    link_to("../../blobs/2", REPO "/snapshots/" COMMIT_A "/name-UD-Q8_K_XL.gguf");
    tree_put("/ollama/blobs/sha256-" DIGEST, "ollama");
    put_manifest(OLLAMA "/library/llama3.2/1b", "sha256:" DIGEST);
    put_manifest(OLLAMA "/library/llama3.2/latest", "sha256:" DIGEST);
    put_manifest(OLLAMA "/person/tuned/7b", "sha256:" DIGEST);
    put_manifest("/ollama/manifests/hf.co/org/repo/Q4_0", "sha256:" DIGEST);
    tree_put("/lm-studio/publisher/model/ocelot-v1-q4_0.gguf", "ocelot");
    tree_put("/llama.cpp/ggml-org_gemma_gemma-3-1b-it-Q8_0.gguf", "gemma");
    tree_put("/folder/plain.gguf", "plain");
    tree_put("/folder/below/second.f16.gguf", "second");
    find();
    expect("ggml-org_gemma_gemma-3-1b-it:Q8_0", "hf.co/org/repo:Q4_0", "llama3.2:1b",
           "llama3.2:latest", "memwall-guide", "ocelot-v1:q4_0", "org/name:Q4_K_M",
           "org/name:UD-Q8_K_XL", "person/tuned:7b", "plain", "second:f16", NULL);
    assert_int_equal(named("plain")->store, MW_STORE_FOLDER);
    assert_int_equal(named("plain")->file_bytes, 5);
    assert_int_equal(named("org/name:q4_k_m")->store, MW_STORE_HUB);
    assert_string_equal(named("llama3.2:1b")->path, tree_path("/ollama/blobs/sha256-" DIGEST));
}

/* A path and its last part alone are read alike. */
static void a_part_of_a_set_has_a_stem(void **state)
{
    struct split_name s;

    (void)state;
    assert_true(split_name_parse("a-00002-of-00003.gguf", &s));
    assert_true(split_name_parse("b/a-00002-of-00003.gguf", &s));
    assert_int_equal(s.prefix, 3);
    assert_false(split_name_parse("-00002-of-00003.gguf", &s));
    assert_false(split_name_parse("b/-00002-of-00003.gguf", &s));
}

static void split_sets_and_snapshots_are_one_model(void **state)
{
    (void)state;
    tree_put("/folder/big-Q4_0-00001-of-00003.gguf", "1");
    tree_put("/folder/big-Q4_0-00002-of-00003.gguf", "22");
    tree_put("/folder/big-Q4_0-00003-of-00003.gguf", "333");
    tree_put("/folder/snapshot/config.json", "{}");
    tree_put("/folder/snapshot/model.safetensors", "4444");
    tree_put("/folder/sharded/config.json", "{}");
    tree_put("/folder/sharded/model.safetensors.index.json",
             "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
             "\"b\":\"model-00002-of-00002.safetensors\"}}");
    tree_put("/folder/sharded/consolidated.safetensors", "not one of them");
    tree_put("/folder/sharded/model-00001-of-00002.safetensors", "1");
    tree_put("/folder/sharded/model-00002-of-00002.safetensors", "1");
    tree_put("/folder/no-weights/config.json", "{}");
    tree_put(REPO "/snapshots/" COMMIT_A "/config.json", "{}");
    tree_put(REPO "/snapshots/" COMMIT_A "/model.safetensors", "12");
    tree_put("/folder/left-over/config.json", "{}");
    tree_put("/folder/left-over/model.safetensors", "55555");
    tree_put("/folder/left-over/model.safetensors.index.json", "{\"weight_map\":{}}");
    tree_put("/folder/left-over/model-00001-of-00002.safetensors", "of another build");
    tree_put("/folder/own-names/config.json", "{}");
    tree_put("/folder/own-names/model.safetensors.index.json",
             "{\"weight_map\":{\"a\":\"first.safetensors\",\"b\":\"second.safetensors\"}}");
    tree_put("/folder/own-names/first.safetensors", "1");
    tree_put("/folder/own-names/second.safetensors", "22");
    tree_put("/folder/broken/config.json", "{}");
    tree_put("/folder/broken/model.safetensors.index.json", "{}");
    find();
    expect("big:Q4_0", "broken", "left-over", "org/name", "own-names", "sharded", "snapshot",
           NULL);
    assert_int_equal(named("left-over")->file_bytes, 5);
    assert_int_equal(named("own-names")->file_bytes, 3);
    assert_int_equal(named("broken")->file_bytes, 0);
    assert_int_equal(named("big")->file_bytes, 6);
    assert_int_equal(named("snapshot")->file_bytes, 4);
    assert_int_equal(named("sharded")->file_bytes, 2);
    assert_string_equal(named("sharded")->path, tree_path("/folder/sharded"));
}

/* A GGUF header with one or two keys, to the file `name`. */
static void put_kind(const char *name, const char *arch, const char *type)
{
    const char *texts[] = { "general.architecture", arch, "general.type", type };
    FILE *f;

    tree_put(name, "");
    f = fopen(tree_path(name), "wb");
    assert_non_null(f);
    fwrite("GGUF\3\0\0\0\0\0\0\0\0\0\0", 1, 16, f);
    fwrite(&(uint64_t){ type != NULL ? 2 : 1 }, 8, 1, f);
    for (int i = 0; i < (type != NULL ? 4 : 2); i++) {
        fwrite(&(uint64_t){ strlen(texts[i]) }, 8, 1, f);
        fwrite(texts[i], 1, strlen(texts[i]), f);
        if (i % 2 == 0)
            fwrite(&(uint32_t){ 8 }, 4, 1, f); /* a text follows */
    }
    assert_int_equal(fclose(f), 0);
}

static void the_header_decides_where_a_name_is_doubtful(void **state)
{
    (void)state;
    put_kind("/folder/a-IMatrix-Q4_0.gguf", "llama", "model");
    put_kind("/folder/b-mmproj-merged.gguf", "llama", "model");
    put_kind("/folder/c-imatrix.gguf", "llama", NULL);
    put_kind("/folder/mmproj-d.gguf", "clip", NULL);
    put_kind("/folder/mmproj-e.gguf", "clip", "mmproj");
    put_kind("/folder/f.imatrix.gguf", "llama", "imatrix");
    tree_put("/folder/g-imatrix.gguf", "");
    tree_put("/folder/h-imatrix.gguf", "GGUF\3");
    find();
    expect("a-IMatrix:Q4_0", "b-mmproj-merged", "c-imatrix", NULL);
}

static void the_commit_of_main_comes_before_older_ones(void **state)
{
    (void)state;
    tree_put(REPO "/refs/main", COMMIT_B "\n");
    tree_put(REPO "/snapshots/" COMMIT_A "/a-Q4_0.gguf", "old");
    tree_put(REPO "/snapshots/" COMMIT_A "/a-Q8_0.gguf", "only here");
    tree_put(REPO "/snapshots/" COMMIT_B "/a-Q4_0.gguf", "new version");
    find();
    expect("org/name:Q4_0", "org/name:Q8_0", NULL);
    assert_int_equal(named("org/name:Q4_0")->file_bytes, 11);
    assert_non_null(strstr(named("org/name:Q8_0")->path, COMMIT_A));
}

static void files_with_one_type_are_named_by_their_files(void **state)
{
    (void)state;
    tree_put(REPO "/snapshots/" COMMIT_A "/small-Q4_0.gguf", "1");
    tree_put(REPO "/snapshots/" COMMIT_A "/large/large-Q4_0-00001-of-00002.gguf", "2");
    tree_put(REPO "/snapshots/" COMMIT_A "/large/large-Q4_0-00002-of-00002.gguf", "2");
    find();
    expect("org/name:large/large-Q4_0-00001-of-00002.gguf", "org/name:small-Q4_0.gguf", NULL);
    assert_int_equal(named("org/name:small-Q4_0")->file_bytes, 1);
    assert_int_equal(named("name:small-q4_0.gguf")->file_bytes, 1);
    assert_int_equal(mw_models_match(models, "org/name:Q4_0", found, 8), 2);
}

static void a_file_in_two_stores_is_listed_once(void **state)
{
    (void)state;
    tree_put(REPO "/snapshots/" COMMIT_A "/a-Q4_0.gguf", "1");
    tree_put("/folder/x", "");
    link_to("../hub/models--org--name/snapshots/" COMMIT_A "/a-Q4_0.gguf", "/folder/b.gguf");
    find();
    expect("org/name:Q4_0", NULL);
}

static void hostile_trees_are_bounded(void **state)
{
    (void)state;
    tree_put("/folder/a.gguf", "1");
    tree_put("/folder/deep/x", "");
    link_to("..", "/folder/deep/up");
    link_to(".", "/folder/self");
    link_to("missing.gguf", "/folder/broken.gguf");
    assert_int_equal(mkfifo(tree_path("/folder/fifo.gguf"), 0600), 0);
    assert_int_equal(mkdir(tree_path("/folder/folder.gguf"), 0700), 0);
    tree_put("/folder/esc\033[2J.gguf", "1");
    tree_put("/folder/\xe2\x80\xae.gguf", "1");
    tree_put("/folder/\xff.gguf", "1");
    tree_put("/folder/.hidden.gguf", "1");
    tree_put("/folder/mmproj-a-F16.gguf", "1");
    tree_put("/folder/imatrix.gguf", "1");
    tree_put("/lm-studio/1/2/3/4/5/too-deep.gguf", "1");
    tree_put("/hub/models--..--x/snapshots/" COMMIT_A "/a.gguf", "1");
    tree_put("/hub/models--a--b--c/snapshots/" COMMIT_A "/a.gguf", "1");
    assert_int_equal(mkfifo(tree_path("/recent"), 0600), 0);
    find();
    expect("a", NULL);
}

static void folders_that_lead_back_end(void **state)
{
    char file[64], name[40];

    (void)state;
    /* The complete machine is searched, so the name must be no other's. */
    snprintf(name, sizeof name, "leads-back-%ld", (long)getpid());
    snprintf(file, sizeof file, "/lm-studio/a/b/%s.gguf", name);
    tree_put(file, "1");
    link_to("../..", "/lm-studio/a/b/loop");
    link_to("..", "/lm-studio/a/loop");
    link_to("/", "/lm-studio/everything");
    find();
    assert_true(mw_models_count(models) >= 1);
    assert_string_equal(named(name)->path, tree_path(file));
}

static void broken_manifests_are_listed_with_the_reason(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"layers\":{}}",
        "{\"layers\":[1,null,{\"mediaType\":3},{}]}",
        "{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\"}]}",
        "{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":7}]}",
    };
    char name[200];

    (void)state;
    tree_put("/ollama/blobs/sha256-" DIGEST, "ollama");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        snprintf(name, sizeof name, OLLAMA "/library/broken/%zu", i);
        tree_put(name, texts[i]);
    }
    put_manifest(OLLAMA "/library/a/path", "sha256:../../../../etc/passwd");
    put_manifest(OLLAMA "/library/a/short", "sha256:77");
    put_manifest(OLLAMA "/library/a/missing",
                 "sha256:0000000000000000000000000000000000000000000000000000000000000000");
    put_manifest(OLLAMA "/library/a/esc\033[2J", "sha256:" DIGEST);
    put_manifest(OLLAMA "/library/a/good", "sha256:" DIGEST);
    put_manifest("/ollama/manifests/too-short", "sha256:" DIGEST);
    find();
    expect("a:good", "a:missing", "a:path", "a:short", "broken:0", "broken:1", "broken:2",
           "broken:3", "broken:4", "broken:6", "broken:7", NULL);
    for (size_t i = 0; i < mw_models_count(models); i++) {
        const struct mw_found *f = mw_models_at(models, i);
        bool is_good = strcmp(f->name, "a:good") == 0;

        assert_int_equal(f->is_described && f->fit == MW_FIT_UNKNOWN, !is_good);
        assert_int_equal(strstr(f->why, "damaged") != NULL,
                         !is_good && strcmp(f->name, "a:missing") != 0);
    }
    assert_string_equal(
        named("a:missing")->why,
        "its weights, blob sha256-000000000000, are missing; fetch it again with Ollama");
}

static void recently_used_models_are_listed_and_come_first(void **state)
{
    char elsewhere[1200], recent[1024];

    (void)state;
    snprintf(recent, sizeof recent, "%s", tree_path("/recent"));
    tree_put("/folder/a.gguf", "1");
    tree_put("/folder/b.gguf", "12");
    tree_put("/elsewhere/c-Q4_0.gguf", "123");
    snprintf(elsewhere, sizeof elsewhere, "7 %s/elsewhere/c-Q4_0.gguf\n8 relative\nx /y\n",
             tree_root);
    tree_put("/recent", elsewhere);
    mw_models_used(recent, tree_path("/folder/b.gguf"));
    mw_models_used(recent, tree_path("/nonexistent"));
    find();
    expect("a", "b", "c:Q4_0", NULL);
    assert_int_equal(named("a")->used_s, 0);
    assert_int_equal(named("c")->used_s, 7);
    assert_int_equal(named("c")->store, MW_STORE_RECENT);
    assert_true(named("b")->used_s > 7);
    mw_models_sort(models, MW_BY_USE);
    expect("b", "c:Q4_0", "a", NULL);
    mw_models_sort(models, MW_BY_SIZE);
    expect("c:Q4_0", "b", "a", NULL);
    assert_true(mw_found_has(mw_models_at(models, 0), "Q4 rec"));
    assert_false(mw_found_has(mw_models_at(models, 0), "q4 folder"));
    assert_true(mw_found_has(mw_models_at(models, 0), ""));
}

static void a_name_finds_the_models_it_can_refer_to(void **state)
{
    static const struct {
        const char *name;
        int n;
        const char *first;
    } cases[] = {
        { "gemma-4-E2B-it:Q4_0", 1, "gemma-4-E2B-it:Q4_0" },
        { "GEMMA-4-e2b-IT:q4_0", 1, "gemma-4-E2B-it:Q4_0" },
        { "gemma-4-E2B:Q4_0", 1, "gemma-4-E2B-it:Q4_0" }, /* the beginning */
        { "E4B:Q4_0", 1, "gemma-4-E4B-it:Q4_0" },         /* a part */
        { "E2B-it", 2, "gemma-4-E2B-it:BF16" },
        { "gemma", 3, "gemma-4-E2B-it:BF16" },
        { "gemma:BF16", 1, "gemma-4-E2B-it:BF16" },
        { "gemma:Q6_K", 0, NULL },
        { "llama3.2", 1, "llama3.2:latest" },
        { "llama3.2:latest", 1, "llama3.2:latest" },
        { "llama3", 2, "llama3.2:3b" },
        { "org/name", 1, "org/name:Q5_K" },
        { "name", 1, "org/name:Q5_K" },
        { "org/nam", 1, "org/name:Q5_K" },
        { "org/name:q5_k", 1, "org/name:Q5_K" },
        { "org/name:file-Q5_K.gguf", 1, "org/name:Q5_K" },
        { "other/name", 0, NULL },
        { "", 0, NULL },
        { ":", 0, NULL },
    };

    (void)state;
    tree_put("/folder/gemma-4-E2B-it-Q4_0.gguf", "1");
    tree_put("/folder/gemma-4-E2B-it-BF16.gguf", "1");
    tree_put("/folder/gemma-4-E4B-it-Q4_0.gguf", "1");
    tree_put(REPO "/snapshots/" COMMIT_A "/file-Q5_K.gguf", "1");
    tree_put("/ollama/blobs/sha256-" DIGEST, "ollama");
    tree_put("/ollama/blobs/sha256-" COMMIT_A "aaaaaaaaaaaaaaaaaaaaaaaa", "ollama");
    put_manifest(OLLAMA "/library/llama3.2/latest", "sha256:" DIGEST);
    put_manifest(OLLAMA "/library/llama3.2/3b", "sha256:" COMMIT_A "aaaaaaaaaaaaaaaaaaaaaaaa");
    find();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = mw_models_match(models, cases[i].name, found, 8);

        if ((int)n != cases[i].n)
            print_error("\"%s\": %zu\n", cases[i].name, n);
        assert_int_equal(n, cases[i].n);
        if (n > 0)
            assert_string_equal(mw_models_at(models, found[0])->name, cases[i].first);
    }
    assert_int_equal(mw_models_similar(models, "gema-4-E4B", found, 2), 2);
    assert_string_equal(mw_models_at(models, found[0])->name, "gemma-4-E4B-it:Q4_0");
    assert_int_equal(mw_models_similar(models, "xyzzy", found, 8), 0);
}

static void two_names_of_one_file_are_not_ambiguous(void **state)
{
    (void)state;
    tree_put("/ollama/blobs/sha256-" DIGEST, "ollama");
    put_manifest(OLLAMA "/library/a/1b", "sha256:" DIGEST);
    put_manifest(OLLAMA "/library/a/1b-it", "sha256:" DIGEST);
    find();
    assert_int_equal(mw_models_count(models), 2);
    assert_int_equal(mw_models_match(models, "a", found, 8), 1);
}

/* ---- descriptions ---- */

static void copy_model(const char *name, const char *to)
{
    size_t n;
    char *bytes = model_read(name, &n);
    FILE *f;

    assert_non_null(bytes);
    tree_put(to, "");
    f = fopen(tree_path(to), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

static bool some_limits(void *ctx, const char *path, const struct mw_options *o,
                        const struct mw_read_sizes *sizes, struct mw_limits *out,
                        struct plan_anchor *anchor)
{
    (void)ctx, (void)path, (void)o, (void)sizes;
    *anchor = (struct plan_anchor){ 0 };
    out->disk_bytes_s = 1e6;
    out->memory_bytes_s = 1e9;
    for (uint32_t i = 0; i < out->n_rate; i++) {
        out->rate[i].column_bytes_s = 5e8;
        out->rate[i].chunk_flops_s = 1e9;
    }
    return true;
}

static void describe_with(const struct mw_options *o, bool has_limits)
{
    struct mw_describe_options how;
    struct mw_describer *d;
    struct err e = ERR_INIT;

    find();
    how = (struct mw_describe_options){ .file = tree_path("/cache/models"),
                                        .limits = has_limits ? some_limits : NULL };
    assert_int_equal(mw_describer_new(&d, o, &how, &e), 0);
    for (size_t i = 0; i < mw_models_count(models); i++)
        mw_describe(d, models, i);
    mw_describer_free(d);
}

static void describe(void)
{
    struct mw_options o;

    mw_options_default(&o);
    o.memory_bytes = 512 * MIB;
    describe_with(&o, false);
}

static const char *outlook(const char *name)
{
    static char text[400];

    mw_fit_text(named(name), text, sizeof text);
    return text;
}

static void an_outlook_names_the_drafts_that_it_assumes(void **state)
{
    struct mw_found f = { .fit = MW_FIT_STREAMS };
    char text[200];

    (void)state;
    f.plan = (struct plan){ .budget_bytes = 700 * MIB, .decode_tps = 2.3, .assumed = 0.5 };
    mw_fit_text(&f, text, sizeof text);
    assert_string_equal(text, "streams, about 2.3 tok/s in 700 MiB if 50 % of the drafts are right");
    f.plan.assumed = 0;
    mw_fit_text(&f, text, sizeof text);
    assert_string_equal(text, "streams, about 2.3 tok/s in 700 MiB");
}

static void the_outlook_is_that_of_the_plan(void **state)
{
    const struct mw_found *f;
    struct err e = ERR_INIT;
    struct mw_options o;
    struct mw_model *m;
    struct plan plan;

    (void)state;
    copy_model("gemma4-tiny-q4_0.gguf", "/folder/gemma.gguf");
    copy_model("llama-tiny.gguf", "/folder/llama.gguf");
    tree_put("/folder/text.gguf", "no model");
    describe();
    assert_string_equal(outlook("gemma"), "fits");
    assert_string_equal(outlook("text"), "unsupported: this is not a GGUF file");
    f = named("gemma");
    assert_string_equal(f->arch, "gemma4");
    assert_string_equal(f->type, "Q4_0");
    assert_true(f->n_ctx_train > 0 && f->n_param > 0);

    mw_options_default(&o);
    o.memory_bytes = 512 * MIB;
    assert_int_equal(mw_model_open(&m, f->path, &e), 0);
    assert_int_equal(mw_plan(m, &o, &plan, &e), 0);
    mw_model_close(m);
    assert_int_equal(plan.pinned_bytes, f->plan.pinned_bytes);
    assert_int_equal(plan.sum_bytes, f->plan.sum_bytes);

    o.memory_bytes = 1 * MIB;
    describe_with(&o, true);
    assert_int_equal(named("gemma")->fit, MW_FIT_TOO_LARGE);
    assert_non_null(strstr(outlook("gemma"), "too large: needs "));
    assert_non_null(strstr(outlook("gemma"), "the budget is 1.00 MiB"));

    o.memory_bytes = named("gemma")->plan.sum_bytes;
    describe_with(&o, true);
    assert_int_equal(named("gemma")->fit, MW_FIT_STREAMS);
    assert_non_null(strstr(outlook("gemma"), "streams, about "));
    assert_non_null(strstr(outlook("gemma"), " tok/s in "));
}

static void a_model_that_cannot_be_read_is_tried_again(void **state)
{
    struct mw_describe_options how = { .file = tree_path("/cache/models") };
    struct mw_describer *d;
    struct err e = ERR_INIT;
    struct mw_options o;

    (void)state;
    mw_options_default(&o);
    copy_model("llama-tiny.gguf", "/folder/llama.gguf");
    assert_int_equal(rename(tree_path("/folder/llama.gguf"), tree_path("/folder/moved")), 0);
    link_to("moved", "/folder/llama.gguf");
    find();
    assert_int_equal(unlink(tree_path("/folder/llama.gguf")), 0);
    assert_int_equal(mw_describer_new(&d, &o, &how, &e), 0);
    mw_describe(d, models, 0);
    mw_describer_free(d);
    assert_int_equal(named("llama")->fit, MW_FIT_UNKNOWN);
    assert_string_equal(outlook("llama"),
                        "not read: cannot open the file: No such file or directory");
    link_to("moved", "/folder/llama.gguf");
    describe();
    assert_string_equal(outlook("llama"), "fits");
}

/* Change the bytes of a file, but neither its size nor its time. */
static void spoil(const char *name)
{
    struct stat st;
    int fd = open(tree_path(name), O_WRONLY);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pwrite(fd, "XXXXXXXX", 8, 0), 8);
    assert_int_equal(futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }), 0);
    close(fd);
}

/* The list is written again, as another file, if a model was opened. */
static ino_t list_inode(void)
{
    struct stat st;

    assert_int_equal(stat(tree_path("/cache/models"), &st), 0);
    return st.st_ino;
}

static void a_model_that_did_not_change_is_not_opened_again(void **state)
{
    ino_t before;

    (void)state;
    copy_model("llama-tiny.gguf", "/folder/llama.gguf");
    describe();
    assert_string_equal(outlook("llama"), "fits");
    before = list_inode();
    describe();
    assert_string_equal(outlook("llama"), "fits");
    assert_int_equal(list_inode(), before);
    assert_int_equal(utimensat(AT_FDCWD, tree_path("/folder/llama.gguf"), NULL, 0), 0);
    describe();
    assert_string_equal(outlook("llama"), "fits");
    assert_int_not_equal(list_inode(), before);
    spoil("/folder/llama.gguf");
    describe();
    assert_int_equal(named("llama")->fit, MW_FIT_UNSUPPORTED);
}

static void a_list_that_is_a_link_is_not_read(void **state)
{
    ino_t before;

    (void)state;
    copy_model("llama-tiny.gguf", "/folder/llama.gguf");
    describe();
    before = list_inode();
    assert_int_equal(rename(tree_path("/cache/models"), tree_path("/cache/other")), 0);
    link_to("other", "/cache/models");
    describe();
    assert_string_equal(outlook("llama"), "fits");
    assert_int_not_equal(list_inode(), before);
}

static void a_damaged_list_of_descriptions_is_ignored(void **state)
{
    (void)state;
    copy_model("llama-tiny.gguf", "/folder/llama.gguf");
    describe();
    spoil("/folder/llama.gguf");
    spoil("/cache/models");
    describe();
    assert_int_equal(named("llama")->fit, MW_FIT_UNSUPPORTED);
    tree_put("/cache/models", "short");
    describe();
    assert_int_equal(named("llama")->fit, MW_FIT_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_the_models_of_every_store, tree_make, end),
        cmocka_unit_test(a_part_of_a_set_has_a_stem),
        cmocka_unit_test_setup_teardown(split_sets_and_snapshots_are_one_model, tree_make, end),
        cmocka_unit_test_setup_teardown(the_header_decides_where_a_name_is_doubtful, tree_make,
                                        end),
        cmocka_unit_test_setup_teardown(the_commit_of_main_comes_before_older_ones, tree_make,
                                        end),
        cmocka_unit_test_setup_teardown(files_with_one_type_are_named_by_their_files, tree_make,
                                        end),
        cmocka_unit_test_setup_teardown(a_file_in_two_stores_is_listed_once, tree_make, end),
        cmocka_unit_test_setup_teardown(hostile_trees_are_bounded, tree_make, end),
        cmocka_unit_test_setup_teardown(folders_that_lead_back_end, tree_make, end),
        cmocka_unit_test_setup_teardown(broken_manifests_are_listed_with_the_reason, tree_make, end),
        cmocka_unit_test_setup_teardown(recently_used_models_are_listed_and_come_first,
                                        tree_make, end),
        cmocka_unit_test_setup_teardown(a_name_finds_the_models_it_can_refer_to, tree_make,
                                        end),
        cmocka_unit_test_setup_teardown(two_names_of_one_file_are_not_ambiguous, tree_make,
                                        end),
        cmocka_unit_test(an_outlook_names_the_drafts_that_it_assumes),
        cmocka_unit_test_setup_teardown(the_outlook_is_that_of_the_plan, tree_make, end),
        cmocka_unit_test_setup_teardown(a_model_that_cannot_be_read_is_tried_again, tree_make,
                                        end),
        cmocka_unit_test_setup_teardown(a_model_that_did_not_change_is_not_opened_again,
                                        tree_make, end),
        cmocka_unit_test_setup_teardown(a_list_that_is_a_link_is_not_read, tree_make, end),
        cmocka_unit_test_setup_teardown(a_damaged_list_of_descriptions_is_ignored, tree_make,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
