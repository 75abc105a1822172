/* Says what a file is that somebody wanted to open as a chat. */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ui/store/store.h"

/* Returns what a file is by its first bytes; NULL if they do not show it. */
static const char *kind_of(const char *s, size_t n)
{
    static const struct {
        const char *begins, *is;
    } signs[] = {
        { "GGUF", "a model; -m opens it" },
        { "# Chat of ", "a chat that was exported as Markdown" },
        { "{\n  \"model\": ", "a chat that was exported as JSON" },
        { "\211PNG", "a picture" },
        { "\377\330\377", "a picture" },
        { "GIF8", "a picture" },
        { "RIFF", "a picture or a sound" },
        { "%PDF", "a PDF document" },
        { "<", "an HTML or XML document" },
        { "PK\003\004", "a zip archive" },
        { "\037\213", "a gzip archive" },
        { "\050\265\057\375", "a zstd archive" },
        { "\177ELF", "a program" },
        { "#!", "a script" },
    };

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (n >= strlen(signs[i].begins) &&
            memcmp(s, signs[i].begins, strlen(signs[i].begins)) == 0)
            return signs[i].is;
    /* safetensors files begin with the length of a JSON text. */
    if (n > 9 && s[8] == '{' && s[6] == 0 && s[7] == 0)
        return "a model; -m opens its folder";
    return NULL;
}

/* Returns what path is; NULL if it could be a chat. */
static const char *look(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const char *is = NULL;
    char head[64];
    struct stat st;
    ssize_t n;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        is = "a folder";
    else if ((n = read(fd, head, sizeof head)) > 0)
        is = kind_of(head, (size_t)n);
    close(fd);
    return is;
}

int store_explain(const char *path, struct err *e)
{
    static const char takes[] =
        "name a saved chat, or the path of a .jsonl file that memwall saved";
    const char *is = look(path);

    if (is != NULL)
        err_set(e, ERR_FORMAT, "is %s, not a saved chat; %s", is, takes);
    else if (e->code == ERR_FORMAT && strcmp(e->field, "line 1") == 0)
        err_set(e, ERR_FORMAT, "line 1: is not a memwall chat file; %s", takes);
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}
