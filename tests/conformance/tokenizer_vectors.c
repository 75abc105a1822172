/*
 * tokenizer_vectors NAME MODEL FOLDER [CHAT.jsonl]...
 *
 * Compare a tokenizer with reference data.  FOLDER has vectors.jsonl (text -> ids, and the text
 * that the ids decode to), pieces.jsonl (id -> bytes) and stream.jsonl (text that may be shown
 * after each id).  A CHAT file has conversations and their ids.  MODEL is a GGUF file or a
 * folder
 * with tokenizer.json.  Prints one line of result for each kind of data.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/catalogue.h"
#include "engine/format/json.h"
#include "engine/text/chat_format.h"
#include "tests/lib/json_line.h"

#define MAX_PEAK_KIB (48000000L / 1024) /* maximum memory to open a model */

struct sum {
    const char *name;
    size_t n, n_bad, n_left_out;
    const char *line; /* the line that is being read */
    size_t len;
};

static const struct catalogue *model;
static const struct tokenizer *tokenizer;
static const char *label;
static int n_failed;

static void bad(struct sum *s, const char *what, const char *text, size_t len)
{
    s->n_bad++;
    if (s->n_bad <= 5)
        printf("    %s %zu: %s: \"%.*s\"\n", s->name, s->n, what, (int)(len < 200 ? len : 200),
               text);
}

static void die(const char *what, const char *why)
{
    printf("not ok %s: %s: %s\n", label, what, why);
    exit(1);
}

static void print_ids(const char *what, const struct ids *ids)
{
    printf("      %s", what);
    for (size_t i = 0; i < ids->n && i < 40; i++)
        printf(" %u", ids->id[i]);
    printf("\n");
}

static void ids_of(const struct json_line *v, struct ids *out)
{
    struct err e = ERR_INIT;

    out->n = 0;
    for (v = v != NULL ? v->first : NULL; v != NULL; v = v->next)
        if (ids_push(out, (uint32_t)v->number, &e) != 0)
            die("memory", e.what);
}

static bool same_ids(const struct ids *a, const struct ids *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->id, b->id, a->n * sizeof *a->id) == 0);
}

/* Returns the text of ids, decoded at once. */
static char *decode(const struct ids *ids, bool show_control, size_t *len)
{
    struct decoder d = { .show_control = show_control };
    char *out = malloc(ids->n * DECODE_MAX + DECODE_MAX);

    *len = 0;
    for (size_t i = 0; out != NULL && i < ids->n; i++)
        *len += decoder_push(&d, tokenizer, ids->id[i], out + *len);
    if (out != NULL)
        *len += decoder_end(&d, out + *len);
    return out;
}

static void check_decoded(struct sum *s, const struct ids *ids, bool show_control,
                          const struct json_line *want, const char *what)
{
    size_t len;
    char *got = decode(ids, show_control, &len);

    if (got == NULL || len != want->len || memcmp(got, want->text, len) != 0)
        bad(s, what, got != NULL ? got : "", len);
    free(got);
}

static void vector_line(struct sum *s, const struct json_line *v)
{
    const struct json_line *text = json_line_get(v, "text");
    const struct json_line *decoded = json_line_get(v, "decoded");
    const struct json_line *visible = json_line_get(v, "visible");
    bool special = json_line_is(json_line_get(v, "special"));
    struct ids want = { 0 }, got = { 0 };
    struct err e = ERR_INIT;

    ids_of(json_line_get(v, "ids"), &want);
    if (tokenizer_encode(tokenizer, text->text, text->len, special, true, &got, &e) != 0) {
        bad(s, e.what, text->text, text->len);
    } else if (!same_ids(&want, &got)) {
        bad(s, special ? "special" : "plain", text->text, text->len);
        if (s->n_bad <= 5) {
            print_ids("want", &want);
            print_ids("got ", &got);
        }
    }
    decoded = decoded != NULL ? decoded : text;
    check_decoded(s, &want, true, decoded, "decoded");
    if (special)
        check_decoded(s, &want, false, visible != NULL ? visible : decoded, "visible");
    ids_free(&want);
    ids_free(&got);
}

static void piece_line(struct sum *s, const struct json_line *v)
{
    const struct json_line *bytes = json_line_get(v, "bytes");
    const struct json_line *kind = json_line_get(v, "kind");
    uint32_t id = (uint32_t)json_line_get(v, "id")->number;
    bool is_control = strcmp(kind->text, "control") == 0;
    char piece[DECODE_MAX], hex[2 * DECODE_MAX + 1] = "";
    size_t n = tokenizer_piece(tokenizer, id, true, piece, sizeof piece);

    for (size_t i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)piece[i]);
    if (strcmp(hex, bytes->text) != 0)
        bad(s, bytes->text, hex, strlen(hex));
    /* Some tokens that a tokenizer.json does not call special are control tokens here. */
    if (is_control && tokenizer_kind(tokenizer, id) != TOKEN_CONTROL &&
        tokenizer_kind(tokenizer, id) != TOKEN_UNKNOWN)
        bad(s, kind->text, piece, n);
    if (is_control && tokenizer_piece(tokenizer, id, false, piece, sizeof piece) != 0)
        bad(s, "shown control token", piece, n);
}

static void stream_line(struct sum *s, const struct json_line *v)
{
    const struct json_line *chunk = json_line_get(v, "chunks")->first;
    struct decoder d = { 0 };
    struct ids ids = { 0 };

    ids_of(json_line_get(v, "ids"), &ids);
    for (size_t i = 0; i < ids.n && chunk != NULL; i++, chunk = chunk->next) {
        char buf[DECODE_MAX];
        size_t n = decoder_push(&d, tokenizer, ids.id[i], buf);

        if (n != chunk->len || memcmp(buf, chunk->text, n) != 0)
            bad(s, "chunk", buf, n);
    }
    ids_free(&ids);
}

static enum chat_role role_of(const char *name)
{
    return strcmp(name, "user") == 0        ? CHAT_USER
           : strcmp(name, "assistant") == 0 ? CHAT_ASSISTANT
                                            : CHAT_SYSTEM;
}

/* The data names formats by a model. */
static const char *format_of(const char *name)
{
    return strcmp(name, "gemma4-e2b") == 0 ? "gemma4"
           : strcmp(name, "gemma2") == 0   ? "gemma3"
                                           : name;
}

/* The same conversation as JSON, and the text that the template prints. */
static void chat_json(struct sum *s, const struct chat_format *f, const struct chat_options *o,
                      const struct json_line *text, const struct ids *want)
{
    struct chat_prompt prompt = { 0 };
    struct json_doc *doc = NULL;
    struct err e = ERR_INIT;

    if (json_parse(&doc, s->line, s->len, &e) != 0 ||
        chat_format_render_json(f, tokenizer, json_get(json_root(doc), "messages"), o, &prompt,
                                &e) != 0)
        bad(s, "as JSON", e.what, strlen(e.what));
    else if (!same_ids(want, &prompt.ids))
        bad(s, "ids as JSON", prompt.text, prompt.len);
    else if (text != NULL &&
             (prompt.len != text->len || memcmp(prompt.text, text->text, text->len) != 0))
        bad(s, "text as JSON", prompt.text, prompt.len);
    chat_prompt_free(&prompt);
    json_free(doc);
}

static void chat_line(struct sum *s, const struct json_line *v)
{
    const struct json_line *options = json_line_get(v, "options");
    const struct json_line *think = json_line_get(options, "enable_thinking");
    const struct json_line *format = json_line_get(v, "format"), *m;
    const struct json_line *text = json_line_get(v, "text");
    struct chat_options o = { .add_generation_prompt = json_line_is(
                                  json_line_get(options, "add_generation_prompt")) };
    struct chat_message messages[16];
    const struct chat_wish wish = { .format = format_of(format->text) };
    struct chat_choice *choice = NULL;
    const struct chat_format *f;
    struct ids want = { 0 }, got = { 0 };
    struct err e = ERR_INIT;
    size_t n = 0;

    if (json_line_get(v, "ids") == NULL && text == NULL) { /* the template refuses it */
        s->n_left_out++;
        return;
    }
    if (think != NULL)
        o.think = json_line_is(think) ? CHAT_THINK_ON : CHAT_THINK_OFF;
    for (m = json_line_get(v, "messages")->first; m != NULL && n < 16; m = m->next, n++) {
        const struct json_line *content = json_line_get(m, "content");
        const struct json_line *reasoning = json_line_get(m, "reasoning");

        if (reasoning == NULL)
            reasoning = json_line_get(m, "reasoning_content");
        messages[n] = (struct chat_message){ .role = role_of(json_line_get(m, "role")->text),
                                             .content = content->text,
                                             .len = content->len };
        if (reasoning != NULL) {
            messages[n].reasoning = reasoning->text;
            messages[n].reasoning_len = reasoning->len;
        }
    }
    if (json_line_get(v, "ids") != NULL)
        ids_of(json_line_get(v, "ids"), &want);
    else if (tokenizer_encode(tokenizer, text->text, text->len, true, true, &want, &e) != 0)
        bad(s, "text", e.what, strlen(e.what));
    f = chat_choose(&choice, model, tokenizer, &wish, &e) == 0 ? chat_choice_format(choice)
                                                               : NULL;
    if (f == NULL || chat_format_render(f, tokenizer, messages, n, &o, &got, &e) != 0) {
        bad(s, json_line_get(v, "case")->text, e.what, strlen(e.what));
    } else if (!same_ids(&want, &got)) {
        bad(s, "case", json_line_get(v, "case")->text, json_line_get(v, "case")->len);
        print_ids("want", &want);
        print_ids("got ", &got);
    } else {
        chat_json(s, f, &o, text, &want);
    }
    chat_choice_free(choice);
    ids_free(&want);
    ids_free(&got);
}

/* Call fn for each line of a file.  Only \n ends a line: other separators are part of it. */
static void each_line(const char *path, struct sum *s,
                      void (*fn)(struct sum *, const struct json_line *))
{
    FILE *f = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;

    if (f == NULL)
        die(path, "cannot be opened");
    while ((n = getdelim(&line, &room, '\n', f)) > 0) {
        struct json_line *v = json_line_parse(line, (size_t)n);

        if (v == NULL)
            die(path, "a line is not JSON");
        s->n++;
        s->line = line;
        s->len = (size_t)n;
        fn(s, v);
        json_line_free(v);
    }
    free(line);
    fclose(f);
    printf("%s %s %s: %zu lines", s->n_bad > 0 || s->n == 0 ? "not ok" : "ok", label, s->name,
           s->n);
    if (s->n_left_out > 0)
        printf(", %zu of them refused by the template", s->n_left_out);
    printf("\n");
    fflush(stdout);
    n_failed += s->n_bad > 0 || s->n == 0;
}

static void in_folder(const char *folder, const char *name,
                      void (*fn)(struct sum *, const struct json_line *))
{
    struct sum s = { .name = name };
    char path[4096];

    snprintf(path, sizeof path, "%s/%s.jsonl", folder, name);
    each_line(path, &s, fn);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_MEMORY 0
#elif defined(__has_feature)
#define COUNTS_MEMORY (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define COUNTS_MEMORY 1
#endif

/* Returns the process's peak of memory in KiB. */
static long peak_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (f != NULL)
        fclose(f);
    return kib;
}

/* A folder with only tokenizer.json is not a model, but has a vocabulary. */
static struct catalogue *open_model(const char *path)
{
    static struct catalogue folder;
    struct catalogue *c = NULL;
    struct err e = ERR_INIT;
    struct stat st;

    if (stat(path, &st) != 0)
        die(path, "is not there");
    if (S_ISDIR(st.st_mode)) {
        folder = (struct catalogue){ .kind = CATALOGUE_SNAPSHOT, .path = strdup(path) };
        folder.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return &folder;
    }
    if (catalogue_open_bare(&c, path, &e) != 0)
        die(path, e.what);
    return c;
}

int main(int argc, char **argv)
{
    struct tokenizer *t;
    struct catalogue *c;
    struct err e = ERR_INIT;
    char text[700];
    long before = peak_kib();

    label = argc > 1 ? argv[1] : "";
    if (argc < 4)
        die("usage", "tokenizer_vectors NAME MODEL FOLDER [CHAT.jsonl]...");
    c = open_model(argv[2]);
    if (tokenizer_open(&t, c, &e) != 0) {
        err_text(&e, text, sizeof text);
        die(argv[2], text);
    }
    model = c;
    tokenizer = t;
    if (COUNTS_MEMORY && peak_kib() - before > MAX_PEAK_KIB)
        die(argv[2], "took too much memory while it was opened");
    if (tokenizer_bytes(t) > tokenizer_bytes_bound(tokenizer_info(t)))
        die(argv[2], "takes more memory than predicted");
    in_folder(argv[3], "vectors", vector_line);
    in_folder(argv[3], "pieces", piece_line);
    in_folder(argv[3], "stream", stream_line);
    for (int i = 4; i < argc; i++) {
        char *slash = strrchr(argv[i], '/');
        struct sum s = { .name = slash != NULL ? slash + 1 : argv[i] };

        each_line(argv[i], &s, chat_line);
    }
    tokenizer_close(t);
    if (c->kind == CATALOGUE_GGUF)
        catalogue_close(c);
    return n_failed > 0;
}
