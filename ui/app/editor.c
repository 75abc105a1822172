#include "config.h"

#include "ui/app/editor.h"

#include <sys/types.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/small_file.h"

#define EDITED_MAX ((size_t)1 << 20) /* a longer text is better attached as a file */

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, text, n);

        if (done < 0 && errno != EINTR)
            return -1;
        text += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* Make the file with text in it; path receives its name. */
static int make_file(char *path, size_t room, const char *text, struct err *e)
{
    const char *folder = getenv("TMPDIR");
    int fd, rc;

    snprintf(path, room, "%s/memwall-XXXXXX.md",
             folder == NULL || folder[0] != '/' ? "/tmp" : folder);
    fd = mkostemps(path, 3, O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot make a file for the editor, \"%.200s\"", path);
    rc = write_all(fd, text, strlen(text));
    if (rc != 0)
        err_sys(e, "cannot write \"%.200s\"", path);
    close(fd);
    if (rc != 0)
        unlink(path);
    return rc;
}

/* Replace the line ends of Windows.  Returns the length. */
static size_t unify_line_ends(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (from[0] != '\r' || from[1] != '\n')
            *to++ = *from;
    *to = '\0';
    return (size_t)(to - text);
}

char *editor_run(struct term *term, const char *text, struct err *e)
{
    const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
    char path[4096], command[4200], sh[] = "sh", dash_c[] = "-c", name[] = "memwall";
    char *argv[] = { sh, dash_c, command, name, path, NULL };
    char *edited = NULL;
    int status;
    size_t n;

    if (make_file(path, sizeof path, text, e) != 0)
        return NULL;
    /* The path is an argument of the shell, so it may contain blanks. */
    snprintf(command, sizeof command, "%.4000s \"$1\"",
             visual != NULL   ? visual
             : editor != NULL ? editor
                              : "editor");
    status = term_run(term, argv, e);
    if (status == 0)
        edited = small_file_read(path, EDITED_MAX, NULL, e);
    else if (status > 0)
        err_set(e, ERR_IO, "the editor failed; the line is as it was");
    unlink(path);
    n = edited == NULL ? 0 : unify_line_ends(edited);
    while (n > 0 && edited[n - 1] == '\n')
        edited[--n] = '\0';
    return edited;
}
