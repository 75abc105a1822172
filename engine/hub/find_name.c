/* Names of models from their files: see find.h. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/format/split_name.h"
#include "engine/hub/find.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool find_is_label(const char *s, size_t n)
{
    static const char *const fixed[] = { "BF16", "F16", "F32", "FP16", "FP32" };
    size_t at = 0;

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (n == strlen(fixed[i]) && strncasecmp(s, fixed[i], n) == 0)
            return true;
    for (size_t i = 0; i < n; i++)
        if (!is_digit(s[i]) && s[i] != '_' && !isalpha((unsigned char)s[i]))
            return false;
    if (n > 4 && (strncasecmp(s, "MXFP", 4) == 0 || strncasecmp(s, "NVFP", 4) == 0))
        return is_digit(s[4]);
    if (n > 0 && strchr("IiTt", s[0]) != NULL)
        at = 1;
    return n > at + 1 && (s[at] == 'Q' || s[at] == 'q') && is_digit(s[at + 1]);
}

size_t find_stem(const char *file, char label[FIND_LABEL])
{
    struct split_name split;
    size_t n = strlen(file), at, from;

    label[0] = '\0';
    if (split_name_parse(file, &split))
        n = split.prefix;
    else if (n > 5 && strcasecmp(file + n - 5, ".gguf") == 0)
        n -= 5;
    for (at = n; at > 0 && file[at - 1] != '-' && file[at - 1] != '.' && file[at - 1] != '/';)
        at--;
    if (at < 2 || file[at - 1] == '/' || !find_is_label(file + at, n - at))
        return n;
    from = at;
    if (at > 4 && strncasecmp(file + at - 4, "-UD-", 4) == 0) /* a mixture of types */
        from = at - 3;
    if (n - from >= FIND_LABEL)
        return n;
    snprintf(label, FIND_LABEL, "%.*s", (int)(n - from), file + from);
    return from - 1;
}

/* "REPO" for a snapshot, "REPO:Q4_0" if no other file has that label, else "REPO:FILE". */
static char *repo_name(const struct mw_models *m, size_t first, size_t i, const char *repo)
{
    const struct find_entry *entry = &m->entries[i];
    unsigned n_label = 0;
    char *name = NULL;
    int rc;

    for (size_t j = first; j < m->n; j++)
        n_label += strcasecmp(m->entries[j].label, entry->label) == 0;
    if (entry->label[0] != '\0' && n_label == 1)
        rc = asprintf(&name, "%s:%s", repo, entry->label);
    else if (entry->file[0] != '\0')
        rc = asprintf(&name, "%s:%s", repo, entry->file);
    else
        rc = asprintf(&name, "%s", repo);
    return rc >= 0 ? name : NULL;
}

int find_name_repo(struct mw_models *m, size_t first, const char *repo, struct err *e)
{
    for (size_t i = first; i < m->n; i++) {
        char *name = repo_name(m, first, i, repo);

        if (name == NULL)
            return err_memory(e, "the list of models");
        free((char *)(uintptr_t)m->entries[i].found.name);
        m->entries[i].found.name = name;
    }
    return 0;
}
