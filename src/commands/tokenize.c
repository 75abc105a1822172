/*
 * memwall tokenize: text to ids; with --decode ids to text; with --chat messages to a prompt.
 *
 *   (no option)  one line per token: id, kind unless normal, text in quotes
 *   --ids        the ids, separated by spaces
 *   --json       {"tokens":[{"id":9259,"kind":"normal","text":"Hello"},...]}; a piece with
 *                incomplete characters also has its bytes in hexadecimal
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/json_write.h"
#include "src/command.h"
#include "src/text/id_list.h"
#include "src/text/prompt.h"
#include "ui/words/clean.h"
#include "ui/words/path.h"

#define IDS_MAX_BYTES      ((size_t)256 << 20) /* ids for --decode are read completely */
#define CHAT_MAX_BYTES     ((size_t)64 << 20)
#define TEMPLATE_MAX_BYTES ((size_t)1 << 20)

/* Print a piece in quotes.  Control characters and broken UTF-8 are printed as \n or \x9f. */
static void print_piece(const char *piece, size_t n)
{
    char clean[4 * MW_PIECE_MAX + 1];
    size_t n_clean = clean_text(clean, sizeof clean, piece, n);
    bool is_clean = n_clean == n && memcmp(clean, piece, n) == 0;

    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)piece[i];

        if (c == '\n')
            fputs("\\n", stdout);
        else if (c == '\t')
            fputs("\\t", stdout);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !is_clean))
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_line(const struct mw_vocab *v, uint32_t id)
{
    char piece[MW_PIECE_MAX];
    size_t n = mw_vocab_piece(v, id, piece, sizeof piece);
    const char *kind = mw_vocab_kind(v, id);

    printf("%7" PRIu32 "  ", id);
    print_piece(piece, n);
    printf("%s%s\n", strcmp(kind, "normal") == 0 ? "" : "  ",
           strcmp(kind, "normal") == 0 ? "" : kind);
}

/* Print one token as JSON; broken characters in its text are replaced. */
static int print_json(struct json *j, const struct mw_vocab *v, uint32_t id, struct err *e)
{
    char piece[MW_PIECE_MAX], hex[2 * MW_PIECE_MAX + 1], *text;
    size_t n = mw_vocab_piece(v, id, piece, sizeof piece), len;
    bool has_space;

    if (mw_vocab_decode(v, &id, 1, true, &text, &len, e) != 0)
        return -1;
    /* The decoder drops the leading space of a text; take it from the piece. */
    has_space = n == len + 1 && piece[0] == ' ' && memcmp(piece + 1, text, len) == 0;
    json_object(j, NULL);
    json_u64(j, "id", id);
    json_string(j, "kind", mw_vocab_kind(v, id));
    if (has_space)
        json_string_n(j, "text", piece, n);
    else
        json_string_n(j, "text", text, len);
    if (!has_space && (n != len || memcmp(piece, text, n) != 0)) {
        for (size_t i = 0; i < n; i++)
            snprintf(hex + 2 * i, 3, "%02x", (unsigned char)piece[i]);
        json_string_n(j, "bytes", hex, 2 * n);
    }
    json_end(j);
    free(text);
    return 0;
}

/* The state while tokens are printed. */
struct tokens {
    const struct mw_vocab *v;
    const struct options *o;
    struct mw_encoder *encoder;
    bool has_some; /* a token was printed */
    struct json json;
};

static int print_token(struct tokens *t, uint32_t id, struct err *e)
{
    bool is_first = !t->has_some;

    t->has_some = true;
    if (t->o->json)
        return print_json(&t->json, t->v, id, e);
    if (t->o->ids)
        printf("%s%" PRIu32, is_first ? "" : " ", id);
    else
        print_line(t->v, id);
    return 0;
}

static int print_tokens(void *ctx, const char *text, size_t len, struct err *e)
{
    struct tokens *t = ctx;
    const uint32_t *ids;
    size_t n;

    if (mw_encoder_push(t->encoder, text, len, &ids, &n, e) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (print_token(t, ids[i], e) != 0)
            return -1;
    return report_flush() ? 0 : err_set(e, ERR_IO, "cannot write to standard output");
}

static void begin_list(struct tokens *t)
{
    if (!t->o->json)
        return;
    json_start_stream(&t->json, stdout);
    json_object(&t->json, NULL);
    json_array(&t->json, "tokens");
}

static void end_list(struct tokens *t)
{
    if (t->o->json) {
        json_end(&t->json);
        json_end(&t->json);
    }
    if (t->o->json || t->o->ids)
        putchar('\n');
}

static int tokenize(const struct mw_vocab *v, const struct options *o, const char *path,
                    struct err *e)
{
    struct tokens t = { .v = v, .o = o };
    int rc;

    if (mw_vocab_encoder(&t.encoder, v, o->special, e) != 0)
        return -1;
    begin_list(&t);
    rc = prompt_stream(path, print_tokens, &t, e);
    if (rc == 0)
        rc = print_tokens(&t, NULL, 0, e);
    if (rc == 0)
        end_list(&t);
    mw_encoder_free(t.encoder);
    return rc;
}

/* Print text, cleaned for a terminal, byte for byte to a pipe or file. */
static int print_text(const struct options *o, const char *text, size_t len, struct err *e)
{
    struct json j;
    char *clean;

    if (o->json) {
        json_start_stream(&j, stdout);
        json_object(&j, NULL);
        json_string_n(&j, "text", text, len);
        json_end(&j);
        json_line(&j);
        return 0;
    }
    if (isatty(STDOUT_FILENO) == 0) {
        fwrite(text, 1, len, stdout);
        return 0;
    }
    clean = malloc(4 * len + 1);
    if (clean == NULL)
        return err_memory(e, "the text");
    fwrite(clean, 1, clean_text(clean, 4 * len + 1, text, len), stdout);
    putchar('\n');
    free(clean);
    return 0;
}

static int decode(const struct mw_vocab *v, const struct options *o, const char *path,
                  struct err *e)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    char *text = NULL, *decoded = NULL;
    uint32_t *ids = NULL;
    size_t n = 0, len = 0;
    int rc = prompt_read_file(path, IDS_MAX_BYTES, &text, &len, e);

    if (rc == 0)
        rc = id_list_parse(name, text, len, mw_vocab_size(v), &ids, &n, e);
    free(text);
    if (rc == 0)
        rc = mw_vocab_decode(v, ids, n, o->special, &decoded, &len, e);
    if (rc == 0)
        rc = print_text(o, decoded, len, e);
    free(decoded);
    free(ids);
    return rc;
}

static int print_prompt(const struct mw_vocab *v, const struct options *o,
                        const struct mw_prompt *prompt, struct err *e)
{
    struct tokens t = { .v = v, .o = o };

    begin_list(&t);
    for (size_t i = 0; i < prompt->n_id; i++)
        if (print_token(&t, prompt->ids[i], e) != 0)
            return -1;
    end_list(&t);
    return 0;
}

/* Print the prompt that the chat template makes of a JSON array of messages. */
static int tokenize_chat(const struct mw_vocab *v, const struct options *o, const char *path,
                         struct err *e)
{
    struct mw_prompt_options how = { .format = o->template == NULL ? o->chat.format : NULL,
                                     .name = strcmp(path, "-") == 0 ? "standard input" : path,
                                     .template_name = o->template,
                                     .think = o->chat.think,
                                     .no_generation_prompt = o->no_prompt };
    struct mw_prompt prompt = { 0 };
    char *template = NULL, *json = NULL;
    size_t len = 0;
    int rc = prompt_read_file(path, CHAT_MAX_BYTES, &json, &len, e);

    if (rc == 0 && o->template != NULL)
        rc = prompt_read_file(o->template, TEMPLATE_MAX_BYTES, &template, &how.template_len, e);
    how.template = template;
    if (rc == 0)
        rc = mw_vocab_chat(v, json, len, &how, &prompt, e);
    if (rc == 0 && prompt.notice[0] != '\0')
        report_notice(prompt.notice, strlen(prompt.notice));
    if (rc == 0)
        rc = o->text_out ? print_text(o, prompt.text, prompt.len, e)
                         : print_prompt(v, o, &prompt, e);
    mw_prompt_free(&prompt);
    free(template);
    free(json);
    return rc;
}

/* Refuse options that cannot be combined, or that need --chat. */
static int check(const struct options *o, struct err *e)
{
    static const struct {
        enum option_id id;
        const char *name;
    } of_chat[] = { { OPT_TEXT_OUT, "--text" },
                    { OPT_TEMPLATE, "--template" },
                    { OPT_NO_PROMPT, "--no-generation-prompt" } };

    if (o->decode && o->ids)
        return err_set(e, ERR_ARGUMENT, "--ids and --decode cannot be combined");
    if (o->decode && o->render)
        return err_set(e, ERR_ARGUMENT, "--chat and --decode cannot be combined");
    if (o->render && o->special)
        return err_set(e, ERR_ARGUMENT, "--chat and --special cannot be combined");
    if (o->text_out && o->ids)
        return err_set(e, ERR_ARGUMENT, "--ids and --text cannot be combined");
    if (o->template != NULL && o->on_line[OPT_FORMAT])
        return err_set(e, ERR_ARGUMENT, "--format and --template cannot be combined");
    for (size_t i = 0; !o->render && i < sizeof of_chat / sizeof of_chat[0]; i++)
        if (options_given(o, of_chat[i].id))
            return err_set(e, ERR_ARGUMENT, "%s needs --chat", of_chat[i].name);
    return 0;
}

static int run_tokenize(const struct options *o)
{
    const char *path = o->arg != NULL ? path_expanded(o->arg) : "-";
    struct err e = ERR_INIT;
    struct mw_vocab *v = NULL;
    int rc = -1;

    if (check(o, &e) != 0)
        return report_usage(&cmd_tokenize, &e);
    if (mw_vocab_open(&v, o->model, &e) == 0) {
        if (mw_vocab_notice(v)[0] != '\0')
            report_notice(mw_vocab_notice(v), strlen(mw_vocab_notice(v)));
        rc = o->render   ? tokenize_chat(v, o, path, &e)
             : o->decode ? decode(v, o, path, &e)
                         : tokenize(v, o, path, &e);
    }
    mw_vocab_close(v);
    return rc == 0 ? EXIT_OK : report_error(&e);
}

const struct command cmd_tokenize = {
    .name = "tokenize",
    .args = "[MODEL] [FILE]",
    .help = "convert text to token ids, ids to text, messages to a prompt",
    .about = "Read a file or standard input and print one token per line: its id, its kind\n"
             "unless that is normal, and its text.  No begin token is added.  With --decode,\n"
             "the input is ids separated by spaces, commas or newlines.  With --chat, the\n"
             "input is a JSON array of messages, and the output is the prompt that the\n"
             "model's chat template makes of them.",
    .examples = "memwall tokenize model.gguf book.txt | wc -l\n"
                "echo -n \"Why is the sky blue?\" | memwall tokenize -m model.gguf --ids\n"
                "memwall tokenize -m model.gguf --ids book.txt | wc -w\n"
                "echo 9259 236764 | memwall tokenize -m model.gguf --decode\n"
                "memwall tokenize -m model.gguf --chat --text chat.json\n"
                "memwall tokenize -m model.gguf --chat --template new.jinja --text chat.json\n",
    .asks = "count tokens",
    .bit = CMD_TOKENIZE,
    .needs_model = true,
    .takes_arg = true,
    .model_first = true,
    .run = run_tokenize,
};
