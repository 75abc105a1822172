/* Messages on standard error and their exit codes: see command.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/command.h"
#include "ui/words/clean.h"

void report_notice(const char *text, size_t n)
{
    char line[1024];

    clean_line(line, sizeof line, text, n);
    fprintf(stderr, "memwall: %s\n", line);
}

static void print_error(const struct err *e)
{
    char text[sizeof e->file + sizeof e->field + sizeof e->what + 64];

    err_text(e, text, sizeof text);
    report_notice(text, strlen(text));
}

int report_error(const struct err *e)
{
    if (e->code == ERR_CANCELLED)
        return EXIT_STOPPED;
    print_error(e);
    return e->code == ERR_BUDGET ? EXIT_NO_FIT : EXIT_FAILED;
}

int report_usage(const struct command *c, const struct err *e)
{
    print_error(e);
    fprintf(stderr, "memwall: try \"memwall %s%s--help\"\n", c != NULL ? c->name : "",
            c != NULL ? " " : "");
    return EXIT_USAGE;
}

/* errno of the first failed write to standard output; 0: none. */
static int write_errno;

bool report_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        if (write_errno == 0)
            write_errno = errno != 0 ? errno : EIO;
        return false;
    }
    return true;
}

int report_end(int code)
{
    struct err e = ERR_INIT;

    if (report_flush())
        return code;
    /* The process that closed the pipe knows that it did: no message. */
    if (write_errno != EPIPE) {
        errno = write_errno;
        err_sys(&e, "could not write to standard output");
        print_error(&e);
    }
    return code == EXIT_OK ? EXIT_FAILED : code;
}
