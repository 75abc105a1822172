/*
 * The terminal program with tests/lib/fake_engine.c instead of an engine.
 *
 *     fake_memwall --home DIR [--pace US] [--bare] [screen options] [MODEL]
 */
#include "config.h"

#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fake_engine.h"
#include "ui/options/options.h"
#include "ui/ui.h"

int main(int argc, char **argv)
{
    static char config[4096], state[4096], data[4096];
    const char *home = "/tmp/fake_memwall";
    struct options options;
    struct ui_chat_options o = { .options = &options,
                                 .engine = &fake_engine,
                                 .paths = { NULL, config, state, data } };
    struct err e = ERR_INIT;
    char text[700];
    int rc;

    options_default(&options);
    options.model = "fake.gguf";
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];

        if (strcmp(a, "--home") == 0 && i + 1 < argc)
            home = argv[++i];
        else if (strcmp(a, "--pace") == 0 && i + 1 < argc)
            fake_engine_token_us = (uint32_t)atoi(argv[++i]);
        else if (strcmp(a, "--bare") == 0)
            o.engine = &fake_bare_engine;
        else if (strcmp(a, "--continue") == 0)
            options.open_chat = "";
        else if (strcmp(a, "--plain") == 0)
            options.ui.plain = true;
        else if (strcmp(a, "--ascii") == 0)
            options.ui.ascii = true;
        else if (strcmp(a, "--count-bytes") == 0)
            options.ui.count_bytes = true;
        else if (strcmp(a, "--sync-frames") == 0)
            options.ui.sync_frames = true;
        else
            options.model = a;
    }
    snprintf(config, sizeof config, "%s/config", home);
    snprintf(state, sizeof state, "%s/state", home);
    snprintf(data, sizeof data, "%s/data", home);
    mkdir(home, 0700);
    mkdir(config, 0700);
    rc = ui_chat(&o, &e);
    if (rc < 0) {
        err_text(&e, text, sizeof text);
        fprintf(stderr, "memwall: %s\n", text);
        return 1;
    }
    return rc;
}
