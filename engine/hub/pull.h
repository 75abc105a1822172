/*
 * pull.h - models fetched from a hub compatible with that of Hugging Face; a part of memwall.h.
 *
 * A model is fetched into the cache of the hub's own program, in the layout that other programs
 * use, too.  This loads libcurl.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_H
#define MEMWALL_ENGINE_HUB_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/hub/models.h"

#define MW_CA_FILES 3

struct mw_hub {
    const char *endpoint; /* "https://huggingface.co" */
    const char *token;    /* sent to the endpoint only; or NULL */
    const char *cache;    /* the folder of the cache */
    const char *temp;     /* a folder for headers, which are deleted again */
    /* Readable once the user wants to stop: calls then fail with ERR_CANCELLED.  -1: never. */
    int stop_fd;
    /* Files, and a folder, with certificates of the authorities to trust instead of those of the
     * system; or NULL.  All of the files count. */
    const char *ca_files[MW_CA_FILES], *ca_folder;
    /* Called with a sentence when a file system lacks a call; NULL: not called. */
    void (*on_notice)(void *ctx, const char *text);
    /* Called once a second while no request is sent, because the last one failed or the hub asks
     * to wait: with the seconds that are left and the reason, which is safe to print.  At the end
     * left_s is 0 and why is NULL.  NULL: not called. */
    void (*on_wait)(void *ctx, uint32_t left_s, const char *why);
    void *ctx;
};

/* Write "ORG/NAME" or "ORG/NAME:VARIANT" for an address or a command that names a model on a
 * hub. Returns false for any other text. */
bool mw_hub_name(const char *text, char *buf, size_t n);

/* Write the name in Ollama's library, "gemma3:4b" or "USER/NAME", of an address of its site or of
 * a name without an organization.  Returns false for any other text. */
bool mw_ollama_name(const char *text, char *buf, size_t n);

struct mw_pull;

/* A model of a repository: a GGUF file, a split set, or a snapshot of safetensors files. */
struct mw_pull_variant {
    const char *label; /* "Q4_K_M", "safetensors", or "" */
    const char *file;  /* the first file, or the folder of a snapshot in one; safe to print */
    bool is_snapshot;
    uint32_t n_file;
    uint64_t bytes, have_bytes; /* of all files; of these, on this disk */
    /* A file with a draft head, or the repository of one, fetched too; safe to print; or NULL.  The
     * repository is known once the model is described. */
    const char *head;
    uint64_t head_bytes; /* not among those of the model */
    /* Without a head: a file with one in the same folder that is not fetched, safe to print, and
     * why not; or NULL. */
    const char *left_head, *left_why;

    /* Filled by mw_pull_describe(). */
    bool is_described;
    char why[200];         /* why it could not be described; "": not tried */
    struct mw_found model; /* is_described: what it is and does here, without name and path */
};

struct mw_pull_info {
    const char *repo, *revision, *commit;
    const char *variant; /* what follows the colon in the name: a file or type, or "" */
    uint64_t free_bytes; /* on the disk of the cache; UINT64_MAX: unknown */
    uint32_t n_unsafe;   /* files left out because of their names */
    uint32_t n_broken;   /* models left out because a file is missing */
};

/*
 * List the models of a repository: "ORG/NAME", "ORG/NAME:TYPE", "ORG/NAME:FILE", or an address or
 * command with them, as people paste it.  revision is a branch, tag or commit; NULL is the one of
 * the address, or "main".  The error explains repositories that are missing,
 * private or gated.  The texts of *o outlive *out.
 */
int mw_pull_open(struct mw_pull **out, const struct mw_hub *o, const char *repo,
                 const char *revision, struct err *e);
void mw_pull_close(struct mw_pull *p);
void mw_pull_info(const struct mw_pull *p, struct mw_pull_info *out);

/* Returns what is missing of broken model i, such as "the snapshot lacks ...", safe to print, or
 * NULL: only the first few are described. */
const char *mw_pull_broken(const struct mw_pull *p, size_t i);

/* The models, the smallest first. */
size_t mw_pull_count(const struct mw_pull *p);
const struct mw_pull_variant *mw_pull_at(const struct mw_pull *p, size_t i);
/* Find the models that a type or file names.  Returns their number; *first is one of them. */
size_t mw_pull_match(const struct mw_pull *p, const char *text, size_t *first);

/* Fetch the headers of model i, and describe it.  Its weights are not fetched.  Returns -1 with
 * *e only if the user wants to stop. */
int mw_pull_describe(struct mw_pull *p, size_t i, struct mw_describer *d, struct err *e);

struct mw_pull_progress {
    const char *file;
    bool is_checking;     /* reading what an earlier call fetched */
    uint64_t done, total; /* bytes of all files of the model */
};
typedef void mw_pull_fn(void *ctx, const struct mw_pull_progress *p);

/*
 * Fetch model i, check it, and put it into the cache.  A call that fails, is stopped or killed
 * keeps the bytes that came, and the next one goes on after them.  If the tokenizer cannot be
 * read, which only its file shows, a notice says so and the model becomes unsupported.  Writes the
 * path for mw_model_open() to path[0 .. n).  Calls fn several times a second.
 */
int mw_pull_fetch(struct mw_pull *p, size_t i, mw_pull_fn *fn, void *ctx, char *path, size_t n,
                  struct err *e);

#endif
