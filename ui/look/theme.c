#include "config.h"

#include "ui/look/theme.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/small_file.h"

#define THEME_FILE_MAX 65536
#define SUFFIX         ".theme"

static const struct ui_color own = { -1, -1, -1 };

/* Levels of the 6x6x6 colour cube in the 256 palette. */
static const uint8_t cube[6] = { 0, 95, 135, 175, 215, 255 };

static int32_t rgb_of_256(int x)
{
    static const int32_t first[16] = { 0x000000, 0xcd0000, 0x00cd00, 0xcdcd00,
                                       0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
                                       0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                       0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff };

    if (x < 16)
        return first[x];
    if (x >= 232)
        return (8 + (x - 232) * 10) * 0x010101;
    x -= 16;
    return cube[x / 36] << 16 | cube[x / 6 % 6] << 8 | cube[x % 6];
}

static int distance(int32_t a, int32_t b)
{
    int d = 0;

    for (int shift = 0; shift <= 16; shift += 8) {
        int x = (a >> shift & 255) - (b >> shift & 255);

        d += x * x;
    }
    return d;
}

/* Returns the entry in [from, to) of the palette that is nearest to rgb. */
static int16_t nearest(int32_t rgb, int from, int to)
{
    int best = from;

    for (int i = from + 1; i < to; i++)
        if (distance(rgb, rgb_of_256(i)) < distance(rgb, rgb_of_256(best)))
            best = i;
    return (int16_t)best;
}

/* A colour as given in one line; parts may be missing. */
struct colour {
    struct ui_color c;
    bool has_rgb, has_256, has_16;
};

static struct ui_color complete(const struct colour *x)
{
    struct ui_color c = x->c;

    if (!x->has_rgb && !x->has_256)
        return x->has_16 ? (struct ui_color){ c.x16 < 0 ? -1 : rgb_of_256(c.x16), c.x16, c.x16 }
                         : own;
    if (!x->has_rgb)
        c.rgb = rgb_of_256(c.x256);
    if (!x->has_256)
        c.x256 = nearest(c.rgb, 16, 256);
    if (!x->has_16)
        c.x16 = nearest(c.rgb, 0, 16);
    return c;
}

/* Returns false if word is not a colour. */
static bool read_colour(struct colour *out, const char *word)
{
    uint64_t n;

    if (word[0] == '#') {
        if (strlen(word) != 7 || strspn(word + 1, "0123456789abcdefABCDEF") != 6)
            return false;
        out->c.rgb = (int32_t)strtoul(word + 1, NULL, 16);
        out->has_rgb = true;
        return true;
    }
    if (strcmp(word, "16:default") == 0) {
        out->c.x16 = -1;
        out->has_16 = true;
        return true;
    }
    if (strncmp(word, "16:", 3) == 0) {
        if (!units_parse_whole(word + 3, false, 0, 15, &n))
            return false;
        out->c.x16 = (int16_t)n;
        out->has_16 = true;
        return true;
    }
    if (!units_parse_whole(word, false, 0, 255, &n))
        return false;
    out->c.x256 = (int16_t)n;
    out->has_256 = true;
    return true;
}

static int read_attr(const char *word)
{
    static const struct {
        const char *name;
        enum ui_attr attr;
    } attrs[] = {
        { "bold", UI_BOLD },           { "dim", UI_DIM },         { "italic", UI_ITALIC },
        { "underline", UI_UNDERLINE }, { "reverse", UI_REVERSE }, { "strike", UI_STRIKE },
    };

    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++)
        if (strcmp(attrs[i].name, word) == 0)
            return (int)attrs[i].attr;
    return 0;
}

/* "foreground on background attributes mono attributes"; modifies words. */
static int read_look(struct theme_role *out, char *words, struct err *e)
{
    struct colour fg = { own, false, false, false }, bg = fg;
    struct colour *colour = &fg;
    char *save = NULL;
    bool is_mono = false;

    *out = (struct theme_role){ own, own, 0, 0 };
    for (char *w = strtok_r(words, " \t\r", &save); w != NULL;
         w = strtok_r(NULL, " \t\r", &save)) {
        int attr = read_attr(w);

        if (attr != 0 && is_mono)
            out->mono |= (uint8_t)attr;
        else if (attr != 0)
            out->attr |= (uint8_t)attr;
        else if (strcmp(w, "on") == 0)
            colour = &bg;
        else if (strcmp(w, "mono") == 0)
            is_mono = true;
        else if (!read_colour(colour, w))
            return err_set(e, ERR_FORMAT, "\"%.40s\" is neither a colour nor an attribute", w);
    }
    out->fg = complete(&fg);
    out->bg = complete(&bg);
    return 0;
}

static int read_line(struct theme *t, char *line, struct err *e)
{
    char *equals = strchr(line, '=');
    char name[32];
    int role;

    line += strspn(line, " \t\r");
    if (*line == '\0' || *line == '#')
        return 0;
    if (equals == NULL)
        return err_set(e, ERR_FORMAT, "not of the form ROLE = LOOK: \"%.40s\"", line);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(line, " \t="), line);
    role = ui_role_parse(name);
    if (role < 0)
        return err_set(e, ERR_FORMAT, "unknown role \"%s\"", name);
    return read_look(&t->role[role], equals + 1, e);
}

int theme_parse(struct theme *out, const char *name, const char *text, struct err *e)
{
    struct theme t = { 0 };
    char line[512], where[32];

    snprintf(t.name, sizeof t.name, "%s", name);
    for (size_t i = 0; i < UI_ROLES; i++)
        t.role[i] = (struct theme_role){ own, own, 0, 0 };
    for (unsigned number = 1; *text != '\0'; number++) {
        size_t n = strcspn(text, "\n");

        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line), text);
        if (n >= sizeof line ? err_set(e, ERR_FORMAT, "%zu bytes are too many", n) != 0
                             : read_line(&t, line, e) != 0) {
            snprintf(where, sizeof where, "line %u", number);
            return err_at(e, NULL, ERR_NO_OFFSET, where);
        }
        text += n + (text[n] == '\n');
    }
    *out = t;
    return 0;
}

/* A NUL would end the text before the file ends. */
static int check_nul(const char *text, size_t n, struct err *e)
{
    const char *nul = memchr(text, '\0', n);
    char where[32];
    unsigned line = 1;

    if (nul == NULL)
        return 0;
    for (const char *c = text; c < nul; c++)
        line += *c == '\n';
    snprintf(where, sizeof where, "line %u", line);
    err_set(e, ERR_FORMAT, "a NUL byte is not text");
    return err_at(e, NULL, ERR_NO_OFFSET, where);
}

static int from_file(struct theme *out, const char *name, const char *path, struct err *e)
{
    size_t n;
    char *text = small_file_read(path, THEME_FILE_MAX, &n, e);
    int rc;

    if (text == NULL)
        return -1;
    rc = check_nul(text, n, e);
    if (rc == 0)
        rc = theme_parse(out, name, text, e);
    if (rc != 0)
        err_at(e, path, ERR_NO_OFFSET, NULL);
    free(text);
    return rc;
}

static int from_table(struct theme *out, const char *name, struct err *e)
{
    char names[300] = THEME_AUTO;

    for (size_t i = 0; theme_texts[i].name != NULL; i++) {
        size_t n = strlen(names);

        if (strcmp(theme_texts[i].name, name) == 0)
            return theme_parse(out, name, theme_texts[i].text, e);
        snprintf(names + n, sizeof names - n, ", %s", theme_texts[i].name);
    }
    return err_set(e, ERR_ARGUMENT, "unknown theme \"%.40s\"; there are %s", name, names);
}

static int find_file_or_table(struct theme *out, const char *name, const char *config_dir,
                              struct err *e)
{
    char path[4096];

    if (strchr(name, '/') != NULL)
        return from_file(out, name, name, e);
    if (config_dir != NULL) {
        snprintf(path, sizeof path, "%s/themes/%s" SUFFIX, config_dir, name);
        if (from_file(out, name, path, e) == 0)
            return 0;
        if (e->sys != ENOENT)
            return -1;
    }
    return from_table(out, name, e);
}

int theme_find(struct theme *out, const char *name, const char *config_dir, bool is_light,
               struct err *e)
{
    if (strcmp(name, THEME_AUTO) != 0)
        return find_file_or_table(out, name, config_dir, e);
    if (find_file_or_table(out, is_light ? "light" : "dark", config_dir, e) != 0)
        return -1;
    snprintf(out->name, sizeof out->name, THEME_AUTO);
    return 0;
}

struct names {
    path_add_fn *add;
    void *list;
    size_t folder; /* bytes of a path before the name */
};

static void add_file(void *ctx, const char *path)
{
    const struct names *to = ctx;
    const char *file = path + to->folder;
    size_t n = strlen(file), suffix = strlen(SUFFIX);
    char name[256];

    if (n <= suffix || strcmp(file + n - suffix, SUFFIX) != 0)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(n - suffix), file);
    to->add(to->list, name);
}

void theme_names(const char *config_dir, path_add_fn *add, void *list)
{
    struct names to = { .add = add, .list = list };
    char folder[4096];

    add(list, THEME_AUTO);
    for (size_t i = 0; theme_texts[i].name != NULL; i++)
        add(list, theme_texts[i].name);
    if (config_dir == NULL)
        return;
    to.folder = (size_t)snprintf(folder, sizeof folder, "%s/themes/", config_dir);
    if (to.folder < sizeof folder)
        path_complete(folder, add_file, &to);
}
