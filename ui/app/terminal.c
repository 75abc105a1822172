/* The questions of src/ about the terminal, before there is a screen: see ui.h. */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/term/modes.h"
#include "ui/ui.h"

bool ui_can_draw(void)
{
    const char *name = getenv("TERM");
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return false;
    close(fd);
    return isatty(STDOUT_FILENO) == 1 && name != NULL && *name != '\0' &&
           strcmp(name, "dumb") != 0;
}

void ui_control_keys(void)
{
    const char *keys = modes_control_keys(getenv("TERM"));

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        /* Only the terminal that controls this process has a foreground group. */
        if (*keys != '\0' && tcgetpgrp(fd) == getpgrp()) {
            (void)!write(fd, keys, strlen(keys));
            return;
        }
}
