/* See models.h. */
#include "config.h"

#include "src/models/models.h"

#include <sys/stat.h>

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/lookalike.h"
#include "src/base/beside.h"
#include "src/base/paths.h"
#include "src/base/variables.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/models/stores.h"
#include "ui/store/store.h"
#include "ui/words/clean.h"
#include "ui/words/path.h"

#define MAX_PLACES 40

static struct {
    bool is_read;
    struct mw_places places;
    struct mw_place place[MAX_PLACES];
    char folder[MAX_PLACES][PATH_MAX];
    char recent[PATH_MAX], cache[PATH_MAX];
    struct limits_store limits;
} known;

/* Add the folder that the format gives, unless it is cut or there are too many. */
static void add(enum mw_store store, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void add(enum mw_store store, const char *fmt, ...)
{
    char *folder = known.folder[known.places.n];
    va_list ap;
    int n;

    if (known.places.n == MAX_PLACES)
        return;
    va_start(ap, fmt);
    n = vsnprintf(folder, PATH_MAX, fmt, ap);
    va_end(ap);
    if (n >= 0 && n < PATH_MAX)
        known.place[known.places.n++] = (struct mw_place){ store, folder };
}

static void add_folder(enum mw_store store, const char *folder)
{
    add(store, "%s", folder);
}

static void add_guide(void)
{
    char folder[PATH_MAX];

    for (int i = 0; paths_share_at(i, "models", folder, sizeof folder); i++)
        add(MW_STORE_GUIDE, "%s", folder);
}

static void add_hub(const char *cache)
{
    const char *hub = variable("HF_HUB_CACHE"), *home = variable("HF_HOME");

    if (hub == NULL)
        hub = variable("HUGGINGFACE_HUB_CACHE");
    if (hub != NULL)
        add(MW_STORE_HUB, "%s", hub);
    if (home != NULL) {
        add(MW_STORE_HUB, "%s/hub", home);
        add(MW_STORE_HUB, "%s", home);
    }
    if (hub == NULL && home == NULL && cache[0] != '\0')
        add(MW_STORE_HUB, "%s/huggingface/hub", cache);
}

static void add_ollama(const char *home)
{
    const char *base = variable("XDG_CONFIG_HOME");
    char config[PATH_MAX];

    const char *models = variable("OLLAMA_MODELS");

    if (models != NULL)
        add(MW_STORE_OLLAMA, "%s", models);
    else if (home[0] != '\0')
        add(MW_STORE_OLLAMA, "%s/.ollama/models", home);
    if (base != NULL && base[0] == '/')
        snprintf(config, sizeof config, "%s", base);
    else
        snprintf(config, sizeof config, "%.4000s/.config", home);
    stores_ollama(config, add_folder);
    /* Where its service for all users keeps them. */
    add(MW_STORE_OLLAMA, "/usr/share/ollama/.ollama/models");
    add(MW_STORE_OLLAMA, "/var/lib/ollama/.ollama/models");
}

static void read_places(void)
{
    const char *llama = variable("LLAMA_CACHE"), *base = variable("XDG_CACHE_HOME");
    struct err ignored = ERR_INIT;
    char cache[PATH_MAX] = "";
    const char *home = paths_home() != NULL ? paths_home() : "";
    struct paths paths;

    known.is_read = true;
    known.places.place = known.place;
    if (base != NULL && base[0] == '/')
        snprintf(cache, sizeof cache, "%s", base);
    else if (home[0] != '\0')
        snprintf(cache, sizeof cache, "%.4000s/.cache", home);
    add_guide();
    if (paths_find(&paths, &ignored) == 0) {
        add(MW_STORE_MODELS, "%s/models", paths.data_dir);
        snprintf(known.recent, sizeof known.recent, "%s/models", paths.state_dir);
        known.places.recent = known.recent;
        snprintf(known.cache, sizeof known.cache, "%s/models", paths.cache_dir);
    }
    add_hub(cache);
    add_ollama(home);
    if (home[0] != '\0')
        stores_lm_studio(home, add_folder);
    if (llama != NULL)
        add(MW_STORE_LLAMA_CPP, "%s", llama);
    else if (cache[0] != '\0')
        add(MW_STORE_LLAMA_CPP, "%s/llama.cpp", cache);
    add(MW_STORE_FOLDER, ".");
}

const struct mw_places *models_places(void)
{
    if (!known.is_read)
        read_places();
    return &known.places;
}

struct mw_describe_options models_describe_options(void)
{
    struct mw_describe_options how = { .limits = limits_kept,
                                       .limits_ctx = &known.limits,
                                       .needs_tokenizer = true };

    limits_store_free(&known.limits);
    limits_read(&known.limits);
    models_places();
    if (known.cache[0] != '\0')
        how.file = known.cache;
    return how;
}

/* ---- the guide ---- */

#define GUIDE_FILE "memwall-guide.gguf"

const char models_guide_notice[] =
    "this is the guide, a small model that knows only memwall; \"memwall list\" shows the "
    "other models on this machine, \"memwall pull\" fetches one, and -m NAME opens one";

int models_use_guide(struct options *o, struct err *e)
{
    static char path[PATH_MAX];
    const struct mw_places *places = models_places();

    for (size_t i = 0; i < places->n; i++)
        if (places->place[i].store == MW_STORE_GUIDE &&
            snprintf(path, sizeof path, "%s/" GUIDE_FILE, places->place[i].folder) < PATH_MAX &&
            access(path, R_OK) == 0) {
            o->model = path;
            return 0;
        }
    return err_set(e, ERR_ARGUMENT,
                   "no model given. Use -m FILE, or run \"memwall list\" to see the models on "
                   "this machine");
}

int models_choose(struct options *o, struct err *e)
{
    if (o->model != NULL)
        return 0;
    if (models_use_guide(o, e) != 0)
        return -1;
    if (!o->quiet)
        report_notice(models_guide_notice, strlen(models_guide_notice));
    return 0;
}

bool models_has_others(void)
{
    struct err ignored = ERR_INIT;
    struct mw_models *m;
    bool has = false;

    if (mw_models_find(&m, models_places(), &ignored) != 0)
        return false;
    for (size_t i = 0; i < mw_models_count(m); i++)
        has |= mw_models_at(m, i)->store != MW_STORE_GUIDE;
    mw_models_free(m);
    return has;
}

bool models_similar(const char *name, char *buf, size_t n)
{
    struct err ignored = ERR_INIT;
    struct mw_models *m;
    size_t found;
    bool any;

    if (mw_models_find(&m, models_places(), &ignored) != 0)
        return false;
    any = mw_models_similar(m, name, &found, 1) > 0;
    if (any)
        snprintf(buf, n, "%s", mw_models_at(m, found)->name);
    mw_models_free(m);
    return any;
}

/* The last part of a path, without the ending of a GGUF file. */
static void name_of_file(const char *path, char *buf, size_t n)
{
    size_t len = strlen(path), from;

    while (len > 1 && path[len - 1] == '/')
        len--;
    for (from = len; from > 0 && path[from - 1] != '/'; from--)
        continue;
    if (len - from > 5 && strncasecmp(path + len - 5, ".gguf", 5) == 0)
        len -= 5;
    clean_line(buf, n, path + from, len - from);
}

void models_name_of(const struct options *o, char *buf, size_t n)
{
    struct err ignored = ERR_INIT;
    const struct mw_found *found;
    struct mw_models *m;

    if (o->model_name != NULL) {
        snprintf(buf, n, "%s", o->model_name);
        return;
    }
    name_of_file(o->model, buf, n);
    if (mw_models_find(&m, models_places(), &ignored) != 0)
        return;
    found = mw_models_of(m, o->model);
    if (found != NULL)
        snprintf(buf, n, "%s", found->name);
    mw_models_free(m);
}

/* ---- the model of a chat ---- */

bool models_is_of_chat(const char *path, const struct store_model *chat)
{
    struct err ignored = ERR_INIT;
    struct mw_model_info info;
    struct mw_model *m;
    char name[sizeof chat->name];

    if (chat->name[0] == '\0' || mw_model_open(&m, path, &ignored) != 0)
        return false;
    mw_model_info(m, &info);
    mw_model_close(m);
    snprintf(name, sizeof name, "%s", info.name);
    return strcmp(name, chat->name) == 0;
}

/* Is it the file or folder of the model?  A chat file can name anything. */
static bool is_file_of_chat(const struct store_model *chat)
{
    struct stat st;

    return chat->file[0] == '/' && stat(chat->file, &st) == 0 &&
           (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && models_is_of_chat(chat->file, chat);
}

/* The model that the chat names, or NULL. */
static const struct mw_found *named_in_chat(const struct mw_models *m,
                                            const struct store_model *chat)
{
    const struct mw_found *f;
    size_t found;

    if (mw_models_match(m, chat->file, &found, 1) != 1)
        return NULL;
    f = mw_models_at(m, found);
    return strcmp(f->name, chat->file) == 0 && models_is_of_chat(f->path, chat) ? f : NULL;
}

/* The model that was opened last of those with the name that the chat has, or NULL.  The guide
 * need not have been opened. */
static const struct mw_found *last_of_chat(struct mw_models *m, const struct store_model *chat)
{
    mw_models_sort(m, MW_BY_USE);
    for (size_t i = 0; i < mw_models_count(m); i++) {
        const struct mw_found *f = mw_models_at(m, i);

        if ((f->used_s != 0 || f->store == MW_STORE_GUIDE) && models_is_of_chat(f->path, chat))
            return f;
    }
    return NULL;
}

enum models_chat models_of_chat(struct options *o, const struct store_model *chat)
{
    static char target[PATH_MAX];
    enum models_chat how = MODELS_CHAT_FOUND;
    struct err ignored = ERR_INIT;
    const struct mw_found *f;
    struct mw_models *m;

    if (chat->name[0] == '\0')
        return MODELS_CHAT_UNKNOWN;
    if (is_file_of_chat(chat)) {
        snprintf(target, sizeof target, "%s", chat->file);
        o->model = target;
        return MODELS_CHAT_FOUND;
    }
    if (mw_models_find(&m, models_places(), &ignored) != 0)
        return MODELS_CHAT_GONE;
    f = named_in_chat(m, chat);
    if (f == NULL) {
        how = chat->file[0] != '\0' ? MODELS_CHAT_OTHER : MODELS_CHAT_FOUND;
        f = last_of_chat(m, chat);
    }
    if (f != NULL) {
        snprintf(target, sizeof target, "%s", f->manifest != NULL ? f->name : f->path);
        o->model = target;
    }
    mw_models_free(m);
    return f != NULL ? how : MODELS_CHAT_GONE;
}

/* ---- names ---- */

/* Call fn for each model that a name can be. */
static void each_candidate(const char *name, void (*fn)(const char *, const struct mw_found *))
{
    struct err ignored = ERR_INIT;
    struct mw_models *m;
    size_t *found, n, n_found;

    if (mw_models_find(&m, models_places(), &ignored) != 0)
        return;
    n = mw_models_count(m);
    found = calloc(n + 1, sizeof *found);
    n_found = found != NULL ? mw_models_match(m, name, found, n) : 0;
    for (size_t i = 0; i < n_found && i < n; i++)
        fn(name, mw_models_at(m, found[i]));
    free(found);
    mw_models_free(m);
}

static void print_candidate(const char *name, const struct mw_found *f)
{
    char path[PATH_MAX];

    (void)name;
    clean_line(path, sizeof path, f->path, strlen(f->path));
    fprintf(stderr, "  %s  (%s)\n", f->name, path);
}

static void print_chosen(const char *name, const struct mw_found *f)
{
    char text[400];

    snprintf(text, sizeof text, "\"%.60s\" is a part of \"%.200s\", which is opened", name,
             f->name);
    report_notice(text, strlen(text));
}

static int refuse_part(const char *name, struct err *e)
{
    return err_set(e, ERR_IO,
                   "no file or model is named \"%.60s\", which is a part of the name of one",
                   name);
}

/* Find the path.  A part of a name is enough with -m; the first of two arguments is rather the
 * first word of a sentence without quotes. */
static int find_path(const struct options *o, unsigned command, char *path, size_t n,
                     struct mw_beside **beside, struct err *e)
{
    bool is_part;

    if (mw_models_resolve(models_places(), o->model, path, n, beside, &is_part, e) != 0)
        return -1;
    if (is_part && o->model_is_first) {
        mw_beside_free(*beside);
        *beside = NULL;
        return refuse_part(o->model, e);
    }
    if (is_part && !o->quiet && command != CMD_CHAT) /* the screen names it */
        each_candidate(o->model, print_chosen);
    return 0;
}

/* Is it written as ORG/NAME or ORG/NAME:TYPE? */
static bool is_like_repo(const char *name)
{
    size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:");
    const char *slash = strchr(name, '/');

    return name[n] == '\0' && slash != NULL && slash != name && slash[1] != '\0' &&
           strchr(slash + 1, '/') == NULL;
}

/* Is it written as NAME:TYPE?  Times and addresses are not. */
static bool is_like_type(const char *name)
{
    const char *colon = strchr(name, ':');
    size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");

    return colon != NULL && colon != name && name + n == colon &&
           isalpha((unsigned char)*name) && isalnum((unsigned char)colon[1]) &&
           strpbrk(colon + 1, ":/ \t\n") == NULL;
}

enum model_word models_word(const char *word)
{
    char path[PATH_MAX];
    struct err ignored = ERR_INIT;
    bool is_part;

    if (strpbrk(word, " \t\n") != NULL || access(word, F_OK) == 0)
        return MODEL_NOT;
    if (mw_models_resolve(models_places(), word, path, sizeof path, NULL, &is_part, &ignored) ==
            0 &&
        !is_part && access(path, F_OK) == 0)
        return MODEL_NAMED;
    return is_like_repo(word) || is_like_type(word) ? MODEL_LIKE : MODEL_NOT;
}

/* Say where the models are, and which command fetches one of that name. */
static void print_sources(const char *name)
{
    char other[PATH_MAX];

    fputs("memwall: \"memwall list\" shows the models on this machine", stderr);
    if (mw_hub_name(name, other, sizeof other))
        fprintf(stderr, ", \"memwall pull %s\" fetches one from the hub", other);
    else if (is_like_repo(name))
        fprintf(stderr, ", \"memwall pull %s\" fetches one from the hub", name);
    else if (mw_ollama_name(name, other, sizeof other))
        fprintf(stderr, ", \"ollama pull %s\" fetches one of Ollama's library", other);
    fputc('\n', stderr);
}

int models_resolve(struct options *o, unsigned command)
{
    static struct mw_beside *beside; /* options refer to its texts */
    static char path[PATH_MAX], lasting[PATH_MAX];
    struct err e = ERR_INIT;
    int code;

    if (find_path(o, command, path, sizeof path, &beside, &e) == 0) {
        if (command == CMD_CHAT &&
            mw_models_lasting(models_places(), o->model, path, lasting, sizeof lasting))
            o->model_lasting = lasting;
        o->model = path;
        o->model_name = beside->name;
        beside_apply(o, beside, command);
        return EXIT_OK;
    }
    (void)lookalike_explain(&e, o->model);
    code = report_error(&e);
    if (o->model_is_first)
        fputs("memwall: the first of two arguments is the model; put a prompt of several words "
              "in quotes\n",
              stderr);
    if (e.code == ERR_ARGUMENT) {
        if (access(o->model, F_OK) != 0)
            each_candidate(o->model, print_candidate);
        return EXIT_USAGE;
    }
    print_sources(o->model);
    return code;
}

bool models_is_here(const char *name)
{
    char path[PATH_MAX], expanded[PATH_MAX];
    struct err e = ERR_INIT;

    return mw_models_resolve(models_places(), path_expand(expanded, sizeof expanded, name),
                             path, sizeof path, NULL, NULL, &e) == 0 ||
           e.code == ERR_ARGUMENT;
}

void models_used(const char *path)
{
    const char *recent = models_places()->recent;

    if (recent != NULL)
        mw_models_used(recent, path);
}
