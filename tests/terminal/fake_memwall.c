/*
 * The terminal program with tests/lib/fake_chat.c instead of an engine.
 *
 *     fake_memwall [--pace US] [--burn N] [--home DIR] [screen options] [MODEL]
 */
#include "config.h"

#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fake_chat.h"
#include "ui/engine/local.h"
#include "ui/options/options.h"
#include "ui/ui.h"

static const char *value(int argc, char **argv, int *i)
{
    if (*i + 1 >= argc) {
        fprintf(stderr, "fake_memwall: %s needs a value\n", argv[*i]);
        exit(2);
    }
    return argv[++*i];
}

int main(int argc, char **argv)
{
    struct options options;
    struct ui_chat_options o = { .options = &options, .engine = &engine_local };
    const char *home = "/tmp/fake_memwall";
    static char config[4096], state[4096], data[4096];
    struct err e = ERR_INIT;
    char text[700];
    int rc;

    options_default(&options);
    options.model = "fake.gguf";
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];

        if (strcmp(a, "--pace") == 0)
            fake_chat_pace((uint32_t)atoi(value(argc, argv, &i)));
        else if (strcmp(a, "--burn") == 0)
            fake_chat_burn(atoi(value(argc, argv, &i)));
        else if (strcmp(a, "--home") == 0)
            home = value(argc, argv, &i);
        else if (strcmp(a, "--theme") == 0)
            options.ui.theme = value(argc, argv, &i);
        else if (strcmp(a, "--open") == 0)
            options.open_chat = value(argc, argv, &i);
        else if (strcmp(a, "--first") == 0)
            o.first = value(argc, argv, &i);
        else if (strcmp(a, "--continue") == 0)
            options.open_chat = "";
        else if (strcmp(a, "--no-save") == 0)
            options.no_save = true;
        else if (strcmp(a, "--plain") == 0)
            options.ui.plain = true;
        else if (strcmp(a, "--ascii") == 0)
            options.ui.ascii = true;
        else if (strcmp(a, "--no-mouse") == 0)
            options.ui.no_mouse = true;
        else if (strcmp(a, "--count-bytes") == 0)
            options.ui.count_bytes = true;
        else if (strcmp(a, "--sync-frames") == 0)
            options.ui.sync_frames = true;
        else if (strcmp(a, "--no-color") == 0)
            options.ui.color = UI_COLOR_NEVER;
        else
            options.model = a;
    }
    snprintf(config, sizeof config, "%s/config", home);
    snprintf(state, sizeof state, "%s/state", home);
    snprintf(data, sizeof data, "%s/data", home);
    mkdir(home, 0700);
    mkdir(config, 0700);
    o.paths = (struct ui_paths){ NULL, config, state, data };
    rc = ui_chat(&o, &e);
    if (rc < 0) {
        err_text(&e, text, sizeof text);
        fprintf(stderr, "memwall: %s\n", text);
        return 1;
    }
    return rc;
}
