/*
 * bench_tokenize MODEL [TEXT]...
 *
 * Measure how long a model and its tokenizer take to open, the memory of the tokenizer, and the
 * speed of encoding.  It encodes each given file, and long lines of one kind of character, each
 * at
 * a tenth of the length and at full length.  This shows whether the time grows with the length.
 */
#include "config.h"

#include <sys/resource.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/format/catalogue.h"
#include "engine/text/tokenizer.h"

#define LINE_BYTES ((size_t)10000000)

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* other programs may use the machine */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns a figure of /proc/self/status in KiB. */
static long status_kib(const char *name)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtol(line + strlen(name), NULL, 10);
    if (f != NULL)
        fclose(f);
    return kib;
}

/* Measure how long opening the model takes; a folder with only a tokenizer is not a model. */
static void measure_open(const char *path)
{
    struct err e = ERR_INIT;
    struct catalogue *c;
    double start;
    long before;

    before = status_kib("VmRSS:");
    start = now();
    if (catalogue_open(&c, path, &e) != 0) {
        printf("no whole model: %s\n", e.what);
        return;
    }
    printf("model opened in %.1f ms, %.1f MiB more at the peak\n", (now() - start) * 1e3,
           (double)(status_kib("VmHWM:") - before) / 1024);
    catalogue_close(c);
}

/* Reset the peak of memory. */
static void forget_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        if (write(fd, "5", 1) != 1)
            perror("clear_refs");
        close(fd);
    }
}

static void measure(const struct tokenizer *t, const char *name, const char *text, size_t len)
{
    struct ids ids = { 0 };
    struct err e = ERR_INIT;
    long before;
    double start, took;

    forget_peak();
    before = status_kib("VmRSS:");
    start = now();
    if (tokenizer_encode(t, text, len, false, true, &ids, &e) != 0) {
        printf("%-24s %s\n", name, e.what);
        return;
    }
    took = now() - start;
    printf("%-24s %9.3f MB %8.3f s %8.2f MB/s %9.3f M ids/s %8.1f MiB more at the peak\n", name,
           (double)len / 1e6, took, (double)len / 1e6 / took, (double)ids.n / 1e6 / took,
           (double)(status_kib("VmHWM:") - before) / 1024);
    fflush(stdout);
    ids_free(&ids);
}

static void measure_file(const struct tokenizer *t, const char *path)
{
    FILE *f = fopen(path, "rb");
    const char *slash = strrchr(path, '/');
    char *text = NULL;
    size_t len = 0, room = 0, n = 1;

    while (f != NULL && n > 0) {
        if (len == room) {
            room = room > 0 ? room * 2 : 1 << 16;
            text = realloc(text, room);
            if (text == NULL)
                exit(1);
        }
        n = fread(text + len, 1, room - len, f);
        len += n;
    }
    if (f != NULL)
        fclose(f);
    measure(t, slash != NULL ? slash + 1 : path, text, len);
    free(text);
}

static void measure_line(const struct tokenizer *t, const char *name, const char *unit)
{
    size_t n = strlen(unit), len = LINE_BYTES / n * n;
    char *text = malloc(len);

    if (text == NULL)
        exit(1);
    for (size_t i = 0; i < len; i++)
        text[i] = unit[i % n];
    measure(t, name, text, len / 10 / n * n);
    measure(t, name, text, len);
    free(text);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *unit;
    } lines[] = {
        { "one letter", "a" },
        { "spaces", " " },
        { "emoji", "\xf0\x9f\x98\x80" },
        { "newlines", "\n" },
        { "digits", "1234567" },
        { "accents", "e\xcc\x81" },
        { "Chinese", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe4\xb8\xad\xe6\x96\x87" },
        { "signs", "=-" },
        { "broken bytes", "\xff\xc3" },
    };
    struct catalogue *c, folder = { .kind = CATALOGUE_SNAPSHOT, .dir_fd = -1 };
    struct tokenizer *t;
    struct err e = ERR_INIT;
    long before;
    double start;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_tokenize MODEL [TEXT]...\n");
        return 2;
    }
    folder.path = argv[1];
    folder.dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c = &folder;
    if (folder.dir_fd < 0 && catalogue_open_bare(&c, argv[1], &e) != 0) {
        fprintf(stderr, "%s\n", e.what);
        return 1;
    }
    measure_open(argv[1]);
    forget_peak();
    before = status_kib("VmRSS:");
    start = now();
    if (tokenizer_open(&t, c, &e) != 0) {
        fprintf(stderr, "%s\n", e.what);
        return 1;
    }
    printf("tokenizer opened in %.1f ms: %u tokens, %.1f MiB kept (bound %.1f), "
           "%.1f MiB more at the peak, %.1f MiB more now\n",
           (now() - start) * 1e3, tokenizer_info(t)->n_token,
           (double)tokenizer_bytes(t) / 1048576,
           (double)tokenizer_bytes_bound(tokenizer_info(t)) / 1048576,
           (double)(status_kib("VmHWM:") - before) / 1024,
           (double)(status_kib("VmRSS:") - before) / 1024);
    for (int i = 2; i < argc; i++)
        measure_file(t, argv[i]);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        measure_line(t, lines[i].name, lines[i].unit);
    tokenizer_close(t);
    if (c != &folder)
        catalogue_close(c);
    return 0;
}
