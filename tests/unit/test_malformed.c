/*
 * Broken model files.  Each is opened in a process of its own with little address space.  The
 * verdict must be right, and the error must name the file and the fault.
 *
 * make_malformed.py writes the cases, and an index with the expected result of each.
 */
#include "config.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/format/catalogue.h"
#include "engine/format/vocab.h"
#include "tests/lib/tree.h"

#define MAX_CASE 512
#define MEMORY   ((rlim_t)64 << 20) /* of address space, more than an idle start uses */
#define PATIENCE 120                /* seconds after which a case counts as hanging */
#define CPU_TIME 1                  /* maximum CPU seconds of a case without a sanitizer */

struct row {
    char path[160], kind[16], verdict[16], field[128];
};

static struct row rows[MAX_CASE];
static size_t n_row;
static char folder[256];

/* The report of a child process. */
struct result {
    int accepted;
    char text[600];
};

/* Returns the bytes of address space in use; 0 under a sanitizer, which maps terabytes. */
static rlim_t address_space(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%lu", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
#endif
}

static void open_case(const struct row *c, struct result *r)
{
    struct err e = ERR_INIT;
    struct catalogue *model = NULL;
    struct vocab_sink nobody = { NULL, NULL, NULL };
    struct vocab_info info;
    char path[512];
    int rc;

    snprintf(path, sizeof path, "%s/%s", folder, c->path);
    if (strcmp(c->kind, "safetensors") == 0)
        rc = catalogue_open_bare(&model, path, &e);
    else
        rc = catalogue_open(&model, path, &e);
    if (rc == 0 && strcmp(c->kind, "safetensors") != 0)
        rc = vocab_read(model, &info, &nobody, &e);
    /* The snapshots' own tokenizer is valid but not supported. */
    if (rc != 0 && e.code == ERR_UNSUPPORTED && strcmp(c->kind, "snapshot") == 0 &&
        model != NULL)
        rc = 0;
    catalogue_close(model);
    r->accepted = rc == 0;
    if (rc != 0)
        err_text(&e, r->text, sizeof r->text);
}

/* Returns whether the child exited by itself.  Its result is in *r, its status in *status. */
static bool run_case(const struct row *c, struct result *r, int *status)
{
    int ends[2];
    pid_t pid;
    ssize_t got;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct result mine = { 0, "" };
        rlim_t used = address_space();
        struct rlimit limit = { used + MEMORY, used + MEMORY };

        if (used != 0) {
            setrlimit(RLIMIT_AS, &limit);
            setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_TIME, CPU_TIME });
        }
        alarm(PATIENCE);
        open_case(c, &mine);
        _exit(write(ends[1], &mine, sizeof mine) == (ssize_t)sizeof mine ? 0 : 9);
    }
    close(ends[1]);
    got = read(ends[0], r, sizeof *r);
    close(ends[0]);
    assert_int_equal(waitpid(pid, status, 0), pid);
    return got == (ssize_t)sizeof *r && WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
}

static void gets_its_verdict(void **state)
{
    const struct row *c = *state;
    struct result r = { 0, "" };
    int status = 0;
    const char *base = strrchr(c->path, '/') != NULL ? strrchr(c->path, '/') + 1 : c->path;

    if (!run_case(c, &r, &status))
        fail_msg("%s: ended with status %#x", c->path, (unsigned)status);
    if (strcmp(c->verdict, "accept") == 0 && !r.accepted)
        fail_msg("refused: %s", r.text);
    if (strcmp(c->verdict, "refuse") == 0 && r.accepted)
        fail_msg("%s was accepted", c->path);
    if (r.accepted)
        return;
    if (strcmp(c->kind, "split") == 0) /* any file of the set may have the fault */
        base = "/m-00";
    if (strstr(r.text, base) == NULL)
        fail_msg("does not name the file: %s", r.text);
    /* The magic of another kind of file is said in words. */
    if (strcmp(c->verdict, "refuse") == 0 && strstr(r.text, c->field) == NULL &&
        !(strcmp(c->field, "magic") == 0 && strstr(r.text, "not a GGUF file") != NULL))
        fail_msg("does not name \"%s\": %s", c->field, r.text);
    for (const char *p = r.text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20)
            fail_msg("is not one clean line: %s", r.text);
    print_message("           %s\n",
                  r.text +
                      (strncmp(r.text, folder, strlen(folder)) == 0 ? strlen(folder) + 1 : 0));
}

static bool split(char *line, struct row *r)
{
    const char *part[5] = { "", "", "", "", "" };
    char *rest = line;

    for (int i = 0; i < 5 && rest != NULL; i++)
        part[i] = strsep(&rest, "\t\n");
    snprintf(r->path, sizeof r->path, "%s", part[0]);
    snprintf(r->kind, sizeof r->kind, "%s", part[1]);
    snprintf(r->verdict, sizeof r->verdict, "%s", part[2]);
    snprintf(r->field, sizeof r->field, "%s", part[3]);
    return part[2][0] != '\0';
}

static bool read_index(void)
{
    char path[512], line[1024];
    FILE *f;

    snprintf(path, sizeof path, "%s/index.tsv", folder);
    f = fopen(path, "r");
    if (f == NULL)
        return false;
    if (fgets(line, sizeof line, f) == NULL)
        line[0] = '\0';
    while (n_row < MAX_CASE && fgets(line, sizeof line, f) != NULL)
        if (split(line, &rows[n_row]))
            n_row++;
    fclose(f);
    return n_row > 100;
}

/* Run the script that writes the cases.  Returns false if it or its interpreter is missing. */
static bool make_cases(void)
{
    const char *shared = getenv("MW_SHARED"), *tmp = getenv("TMPDIR");
    char script[512];
    int status = 0;
    pid_t pid;

    snprintf(script, sizeof script, "%s/conformance/malformed/make_malformed.py",
             shared != NULL ? shared : "");
    snprintf(folder, sizeof folder, "%s/memwall-malformed-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (access(script, R_OK) != 0 || mkdtemp(folder) == NULL)
        return false;
    pid = fork();
    if (pid == 0) {
        int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(quiet, STDOUT_FILENO);
        execlp("python3", "python3", script, folder, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return false;
    return read_index();
}

int main(void)
{
    static struct CMUnitTest tests[MAX_CASE];
    int failed = 77;

    if (make_cases()) {
        for (size_t i = 0; i < n_row; i++)
            tests[i] =
                (struct CMUnitTest){ rows[i].path, gets_its_verdict, NULL, NULL, &rows[i] };
        failed = _cmocka_run_group_tests("malformed", tests, n_row, NULL, NULL);
    } else {
        printf("skip malformed: make_malformed.py or python3 is not at hand\n");
    }
    tree_remove(folder);
    return failed;
}
