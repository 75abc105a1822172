#include "config.h"

#include "tests/lib/tiny_vocab.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const file_names[] = { "tokenizer.json", "tokenizer_config.json",
                                          "chat_template.jinja" };

static const char *or_else(const char *s, const char *instead)
{
    return s != NULL ? s : instead;
}

/* The letter that stands for a byte in a byte-level vocabulary, in UTF-8. */
static void letter(FILE *f, int byte)
{
    int cp = byte;

    if (byte <= 0x20)
        cp = 0x100 + byte;
    else if (byte >= 0x7f && byte <= 0xa0)
        cp = 0x121 + byte - 0x7f;
    else if (byte == 0xad)
        cp = 0x143;
    if (cp == '"' || cp == '\\')
        fprintf(f, "\\%c", cp);
    else
        fprintf(f, "\\u%04x", (unsigned)cp);
}

/* Count the strings of a JSON list that has no brackets. */
static void number_texts(FILE *f, const char *texts)
{
    int id = TINY_FIRST;
    bool in = false;

    for (const char *p = texts; *p != '\0'; p++) {
        if (*p == '\\' && in) {
            fputc(*p++, f);
            fputc(*p, f);
            continue;
        }
        fputc(*p, f);
        if (*p == '"')
            in = !in;
        if (*p == '"' && !in)
            fprintf(f, ":%d", id++);
    }
}

char *tiny_json(const struct tiny *t)
{
    char *out = NULL;
    size_t n;
    FILE *f = open_memstream(&out, &n);

    if (f == NULL)
        return NULL;
    fprintf(f, "{\"version\":\"1.0\",\"added_tokens\":[%s],", or_else(t->added, ""));
    fprintf(f, "\"normalizer\":%s,",
            or_else(t->normalizer, t->byte_level
                                       ? "null"
                                       : "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
                                         "\"content\":\"\u2581\"}"));
    fprintf(f, "\"pre_tokenizer\":%s,",
            or_else(t->pre_tokenizer,
                    t->byte_level ? "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                                    "\"use_regex\":true}"
                                  : "null"));
    fprintf(f, "\"model\":{\"type\":\"BPE\",\"byte_fallback\":%s,%s%s\"vocab\":{",
            t->byte_level ? "false" : "true", or_else(t->model, ""),
            t->model != NULL ? "," : "");
    for (int i = 0; i < 256; i++) {
        fputs(i > 0 ? ",\"" : "\"", f);
        if (t->byte_level)
            letter(f, i);
        else
            fprintf(f, "<0x%02X>", (unsigned)i);
        fprintf(f, "\":%d", i);
    }
    if (t->texts != NULL) {
        fputc(',', f);
        number_texts(f, t->texts);
    }
    fprintf(f, "},\"merges\":[%s]}}", or_else(t->merges, ""));
    fclose(f);
    return out;
}

static void write_file(int dir, const char *name, const char *text, size_t len)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        abort();
    close(fd);
}

struct catalogue *tiny_open_text(const char *tokenizer_json, size_t len, const struct tiny *t)
{
    const char *tmp = getenv("TMPDIR");
    struct catalogue *c = calloc(1, sizeof *c);
    char path[4096];

    snprintf(path, sizeof path, "%s/memwall-vocab-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (c == NULL || mkdtemp(path) == NULL)
        abort();
    c->kind = CATALOGUE_SNAPSHOT;
    c->path = strdup(path);
    c->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    write_file(c->dir_fd, file_names[0], tokenizer_json, len);
    if (t->config != NULL)
        write_file(c->dir_fd, file_names[1], t->config, strlen(t->config));
    if (t->template != NULL)
        write_file(c->dir_fd, file_names[2], t->template, strlen(t->template));
    return c;
}

struct catalogue *tiny_open(const struct tiny *t)
{
    char *text = tiny_json(t);
    struct catalogue *c = tiny_open_text(text, strlen(text), t);

    free(text);
    return c;
}

void tiny_close(struct catalogue *c)
{
    for (size_t i = 0; i < sizeof file_names / sizeof file_names[0]; i++)
        unlinkat(c->dir_fd, file_names[i], 0);
    close(c->dir_fd);
    rmdir(c->path);
    free(c->path);
    free(c);
}
