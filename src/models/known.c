/* See known.h. */
#include "config.h"

#include "src/models/known.h"

#include <sys/stat.h>

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "src/base/paths.h"
#include "src/command.h"

#define DATA_FILE "known-models.json"
#define SUGGESTED 5  /* maximum names of a suggestion */
#define MAX_NAME  64 /* bytes of a name that are compared */

int known_list(struct mw_known **out, struct err *e)
{
    char path[PATH_MAX];

    *out = NULL;
    if (paths_share(DATA_FILE, path, sizeof path))
        return mw_known_open(out, path, e);
    err_set(e, ERR_IO, "the file with known models is not installed");
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

/* The name without the organisation and the type is compared. */
static int refuse_name(const struct mw_known *list, const char *name, struct err *e)
{
    const char *slash = strrchr(name, '/');
    struct near near = { .word = slash != NULL ? slash + 1 : name };

    near.len = strcspn(near.word, ":");
    for (size_t i = 0; i < mw_known_count(list); i++) {
        struct mw_known_info known;

        mw_known_at(list, i, &known);
        near_try(&near, known.name);
    }
    if (near.name == NULL)
        return err_set(e, ERR_IO, "\"%.100s\" is not a known model", name);
    return err_set(e, ERR_ARGUMENT,
                   "\"%.100s\" is neither on this machine nor a known model; did you mean "
                   "\"%s\"?",
                   name, near.name);
}

static int open_model(struct mw_model **out, const struct mw_known *list, const char *name,
                      struct err *e)
{
    const char *label;
    char types[320];
    size_t i;

    if (mw_known_find(list, name, &i, &label))
        return mw_model_open_known(out, list, i, label, e);
    if (i == mw_known_count(list))
        return refuse_name(list, name, e);
    mw_known_types(list, i, types, sizeof types);
    return err_set(e, ERR_ARGUMENT, "the type of \"%.100s\" is not one of %s", name, types);
}

int known_open_model(struct mw_model **out, const char *name, struct err *e)
{
    struct mw_known *list;
    int rc;

    *out = NULL;
    if (known_list(&list, e) != 0)
        return -1;
    rc = open_model(out, list, name, e);
    mw_known_close(list);
    return rc;
}

/* Copy the letters and digits of the first len bytes of name, in lower case. */
static void plain_name(char *buf, size_t n, const char *name, size_t len)
{
    size_t used = 0;

    for (size_t i = 0; i < len && used + 1 < n; i++)
        if (isalnum((unsigned char)name[i]))
            buf[used++] = (char)tolower((unsigned char)name[i]);
    buf[used] = '\0';
}

/* List at most SUGGESTED names that contain plain.  Returns the number of all. */
static size_t list_containing(const struct mw_known *list, const char *plain, char *text,
                              size_t size)
{
    size_t n = 0, used = 0;

    for (size_t i = 0; i < mw_known_count(list); i++) {
        struct mw_known_info known;
        char name[MAX_NAME];

        mw_known_at(list, i, &known);
        plain_name(name, sizeof name, known.name, strlen(known.name));
        if (strstr(name, plain) != NULL && n++ < SUGGESTED && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", n > 1 ? ", " : "",
                                     known.name);
    }
    return n;
}

void known_suggest(const char *name)
{
    const char *slash = strrchr(name, '/');
    char plain[MAX_NAME], names[400], line[480];
    struct err ignored = ERR_INIT;
    struct mw_known *list;
    size_t n;

    name = slash != NULL ? slash + 1 : name;
    plain_name(plain, sizeof plain, name, strcspn(name, ":"));
    if (plain[0] == '\0' || known_list(&list, &ignored) != 0)
        return;
    n = list_containing(list, plain, names, sizeof names);
    mw_known_close(list);
    if (n == 0)
        return;
    snprintf(line, sizeof line, "known to plan and doctor: %s%s", names,
             n > SUGGESTED ? ", ..." : "");
    report_notice(line, strlen(line));
}

void known_folder(char *buf, size_t n)
{
    struct err ignored = ERR_INIT;
    struct paths paths;
    struct stat st;

    if (paths_find(&paths, &ignored) != 0 || stat(paths.data_dir, &st) != 0)
        snprintf(buf, n, ".");
    else
        snprintf(buf, n, "%s", paths.data_dir);
}
