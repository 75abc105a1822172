#include "config.h"

#include "engine/format/file_open.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/lookalike.h"
#include "engine/format/reader.h"

static void set_identity(struct model_file *f, const struct stat *st)
{
    f->size = (uint64_t)st->st_size;
    f->dev = (uint64_t)st->st_dev;
    f->ino = (uint64_t)st->st_ino;
    f->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    f->ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

bool model_file_is_there(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool model_file_unended(int dir_fd, struct stat *st)
{
    static const char end[] = ".incomplete";
    int fd = openat(dir_fd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *blobs = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool found = false;

    while (blobs != NULL && !found && (entry = readdir(blobs)) != NULL) {
        size_t n = strlen(entry->d_name);

        found = n >= sizeof end && strcmp(entry->d_name + n + 1 - sizeof end, end) == 0 &&
                fstatat(fd, entry->d_name, st, AT_SYMLINK_NOFOLLOW) == 0;
    }
    if (blobs != NULL)
        closedir(blobs);
    else if (fd >= 0)
        close(fd);
    return found;
}

/* Report that a file cannot be opened. */
static void cannot_open(struct err *e, int dir_fd, const char *name, const char *shown)
{
    bool is_gone = errno == ENOENT;

    err_sys(e, "cannot open the file");
    if (is_gone && model_file_is_there(dir_fd, name))
        err_set(e, ERR_IO, "is a link to a file that is missing; fetch it again");
    else
        (void)lookalike_explain(e, shown);
}

/* Open the file that the flags let open. */
static int open_file(struct model_file *f, int dir_fd, const char *name, const char *shown,
                     int flags, struct err *e)
{
    struct stat st;

    *f = (struct model_file){ .fd = -1 };
    /* O_NONBLOCK: do not wait for the other end of a FIFO. */
    f->fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (f->fd < 0) {
        cannot_open(e, dir_fd, name, shown);
        return err_at(e, shown, ERR_NO_OFFSET, NULL);
    }
    if (fstat(f->fd, &st) != 0) {
        err_sys(e, "cannot read its size");
        goto fail;
    }
    if (!S_ISREG(st.st_mode)) {
        err_set(e, ERR_FORMAT, "is %s, not a file",
                S_ISDIR(st.st_mode)    ? "a folder"
                : S_ISFIFO(st.st_mode) ? "a FIFO"
                                       : "a device or socket");
        goto fail;
    }
    f->path = strdup(shown);
    if (f->path == NULL) {
        err_memory(e, "a file's name");
        goto fail;
    }
    if ((flags & O_NOFOLLOW) != 0 && st.st_uid != geteuid()) {
        err_set(e, ERR_FORMAT, "belongs to another user");
        goto fail;
    }
    set_identity(f, &st);
    return 0;

fail:
    model_file_close(f);
    return err_at(e, shown, ERR_NO_OFFSET, NULL);
}

int model_file_open(struct model_file *f, int dir_fd, const char *name, const char *shown,
                    struct err *e)
{
    return open_file(f, dir_fd, name, shown, 0, e);
}

int model_file_open_own(struct model_file *f, const char *path, struct err *e)
{
    return open_file(f, AT_FDCWD, path, path, O_NOFOLLOW, e);
}

bool model_file_now(const struct model_file *f, struct model_file *now)
{
    struct stat st;

    *now = (struct model_file){ .fd = -1 };
    if (fstat(f->fd, &st) != 0)
        return false;
    set_identity(now, &st);
    return true;
}

void model_file_close(struct model_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (struct model_file){ .fd = -1 };
}

const char *file_says(const struct model_file *f)
{
    static const struct {
        const char *begins, *is;
    } signs[] = {
        { "GGUF", "a GGUF file" },
        { "version https://git-lfs",
          "a git-lfs pointer; run \"git lfs pull\" to fetch the model itself" },
        { "version https://hawser", "a git-lfs pointer; the model itself was not fetched" },
        { "<!doctype", "an HTML page, probably a download error; fetch the file again" },
        { "<html", "an HTML page, probably a download error; fetch the file again" },
        { "<?xml", "an XML document, probably a download error; fetch the file again" },
        { "PK\003\004", "a zip archive, as PyTorch writes them (.bin, .pt); convert the model "
                        "to GGUF or safetensors" },
        { "\200\002", "a Python pickle; convert the model to GGUF or safetensors" },
        { "MZqFpD", "a llamafile, a program with a model in it; fetch the GGUF file itself" },
        { "\211HDF", "a file of TensorFlow (HDF5); convert the model to GGUF or safetensors" },
        { "Entry not found", "an answer of the hub: the repository has no such file" },
        { "Repository not found", "an answer of the hub: there is no such repository" },
        { "Invalid username", "an answer of the hub: it needs an access token" },
        { "Access to model", "an answer of the hub: its licence must be accepted first" },
        { "{\"error", "an answer of a server with an error, not the file; fetch it again" },
        { "lmgg", "a GGML file of 2023; convert the model to GGUF" },
        { "fmgg", "a GGML file of 2023; convert the model to GGUF" },
        { "tjgg", "a GGML file of 2023; convert the model to GGUF" },
        { "algg", "an adapter (LoRA) in an old format, not a model; open the model that it was "
                  "made for" },
        { "\037\213", "a gzip archive; unpack it first" },
        { "\050\265\057\375", "a zstd archive; unpack it first" },
        { "\3757zXZ", "an xz archive; unpack it first" },
        { "7z\274\257", "a 7z archive; unpack it first" },
        { "Rar!", "a RAR archive; unpack it first" },
        { "BZh", "a bzip2 archive; unpack it first" },
        { "\223NUMPY", "an array of NumPy; convert the model to GGUF or safetensors" },
        { "FROM ", "a Modelfile of Ollama; run \"ollama create\" with it, or open the file that it "
                   "names" },
        { "d8:announce", "a torrent, not the file itself; download the file with it" },
        { "%PDF", "a PDF document" },
        { "\211PNG", "a picture" },
        { "\377\330\377", "a picture" },
        { "MZ", "a program for Windows" },
        { "\177ELF", "a program" },
        { "#!", "a script" },
        { "\357\273\277GGUF", "one that a text editor has changed; fetch it again" },
        { "{", "a JSON text; to open a snapshot, name its folder" },
    };
    static const char zeros[64];
    char head[64] = "";
    const char *p = head;
    ssize_t got = pread(f->fd, head, sizeof head - 1, 0);

    if (got <= 0)
        return got == 0 ? "an empty file; fetch it again" : NULL;
    reader_drop(f->fd, 0, (uint64_t)got);
    if (memcmp(head, zeros, (size_t)got) == 0)
        return "a file of zeros, probably a download that has not ended; fetch it again";
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (strncasecmp(p, signs[i].begins, strlen(signs[i].begins)) == 0)
            return signs[i].is;
    /* safetensors files begin with the length of a JSON text. */
    if (got > 9 && head[8] == '{' && head[6] == 0 && head[7] == 0)
        return "a safetensors file; name its folder, which must have a config.json";
    return NULL;
}

int file_not_json(const struct model_file *f, struct err *e)
{
    const char *says = e->code == ERR_FORMAT ? file_says(f) : NULL;

    if (says != NULL && strncmp(says, "a JSON text", 11) != 0)
        err_set(e, ERR_FORMAT, "is not a JSON text but %s", says);
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

int file_check_ended(const struct model_file *f, struct err *e)
{
    static const char *const states[] = { ".aria2", ".st", ".lftp-pget-status" };
    const char *slash = strrchr(f->path, '/'), *base = slash != NULL ? slash + 1 : f->path;

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        char *state = NULL;
        bool is_there = false;

        if (asprintf(&state, "%s%s", f->path, states[i]) < 0)
            return err_memory(e, "a file's name");
        is_there = access(state, F_OK) == 0;
        free(state);
        if (!is_there)
            continue;
        err_set(e, ERR_IO,
                "its download has not ended, because \"%.100s%s\" is beside it; continue the "
                "download",
                base, states[i]);
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    return 0;
}
