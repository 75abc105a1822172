/* See page_facts.h. */
#include "config.h"

#include "src/report/page_facts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/doctor/doctor_print.h"
#include "src/report/page_html.h"
#include "ui/words/markup.h"

/* --- names that do not belong into a report --- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Replace a word by stars of its length. */
static void hide_word(char *text, const char *word)
{
    size_t n = word != NULL ? strlen(word) : 0;

    if (n < 2)
        return;
    for (char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        if ((at == text || !is_word(at[-1])) && !is_word(at[n]))
            memset(at, '*', n);
}

/* Shorten paths to their last part: "/mnt/me/a.gguf" becomes "a.gguf". */
static void hide_folders(char *text)
{
    char *to = text;

    for (char *at = text; *at != '\0';) {
        bool begins = *at == '/' && (at == text || (!is_word(at[-1]) && at[-1] != '/'));
        size_t n = begins ? strcspn(at, " \"'()<>,;:\n") : 0;
        size_t last = n;

        while (last > 0 && at[last - 1] != '/')
            last--;
        /* A path of one part keeps its slash. */
        if (last <= 1) {
            *to++ = *at++;
            continue;
        }
        memmove(to, at + last, n - last);
        to += n - last;
        at += n;
    }
    *to = '\0';
}

void page_facts_hide(char *text)
{
    char host[256] = "";
    const char *user = getenv("USER");

    hide_folders(text);
    if (gethostname(host, sizeof host - 1) == 0) {
        hide_word(text, host);
        host[strcspn(host, ".")] = '\0';
        hide_word(text, host);
    }
    /* This name says nothing, and is part of device names. */
    if (user != NULL && strcmp(user, "root") != 0)
        hide_word(text, user);
}

/* --- collecting --- */

static struct page_fact *add(struct page_facts *f)
{
    if (f->n == f->room) {
        size_t room = f->room * 2 + 64;
        struct page_fact *more = realloc(f->fact, room * sizeof *more);

        if (more == NULL)
            return NULL;
        f->fact = more;
        f->room = room;
    }
    f->fact[f->n] = (struct page_fact){ .section = f->section };
    return &f->fact[f->n++];
}

static void on_fact(void *ctx, const struct mw_fact *fact)
{
    struct page_facts *f = ctx;
    struct page_fact *one = add(f);

    if (one == NULL) {
        f->is_complete = false;
        return;
    }
    one->fact = *fact;
    page_facts_hide(one->fact.text);
}

static void end_section(struct page_facts *f, int rc, const struct err *e)
{
    struct page_fact *one = rc != 0 ? add(f) : NULL;

    f->is_complete &= rc == 0;
    if (one == NULL)
        return;
    one->is_error = true;
    snprintf(one->fact.text, sizeof one->fact.text, "%.120s",
             e->code == ERR_CANCELLED ? "stopped" : e->what);
    page_facts_hide(one->fact.text);
}

struct steps {
    struct page_facts *f;
    const struct page_facts_how *how;
};

static void on_fact_of_steps(void *ctx, const struct mw_fact *fact)
{
    on_fact(((struct steps *)ctx)->f, fact);
}

static void on_step(void *ctx, const char *doing)
{
    const struct steps *s = ctx;

    s->how->step(s->how->ctx, doing);
}

int page_facts_measure(struct page_facts *f, const struct page_facts_how *how, struct err *e)
{
    struct steps steps = { f, how };
    const struct mw_doctor d = {
        .fact = on_fact_of_steps, .step = on_step, .ctx = &steps, .cancelled = how->cancelled
    };
    struct err section = ERR_INIT;

    *f = (struct page_facts){ .is_complete = true, .section = "memory" };
    end_section(f, mw_doctor_memory(&d, &section), &section);
    f->section = "disk";
    if (!how->no_disk && !*how->cancelled)
        end_section(f, mw_doctor_disk(&d, how->m, how->folder, &section), &section);
    f->section = "arithmetic";
    if (!*how->cancelled)
        end_section(f, mw_doctor_arithmetic(&d, &section), &section);
    f->is_complete &= !*how->cancelled;
    return f->n > 0 ? 0 : err_memory(e, "the facts of this machine");
}

void page_facts_free(struct page_facts *f)
{
    free(f->fact);
    *f = (struct page_facts){ 0 };
}

/* --- writing --- */

/* The table of direct reads: a row for each block size, a column for each depth, the best in
 * bold.  Returns the number of facts that it has. */
static size_t write_cells(const struct page_fact *first, size_t n, FILE *to)
{
    size_t cells = 0, best = 0, columns = 0;
    char heading[256] = "block", text[32];

    while (cells < n && first[cells].fact.depth > 0) {
        best = first[cells].fact.value > first[best].fact.value ? cells : best;
        columns += first[cells].fact.block_bytes == first[0].fact.block_bytes;
        cells++;
    }
    for (size_t i = 0; i < columns && i < 8; i++)
        snprintf(heading + strlen(heading), 32, "|#%u in flight", first[i].fact.depth);
    page_html_table(
        to, "Direct reads by block size and reads in flight, GB/s; the best is bold", heading);
    for (size_t i = 0; i < cells; i++) {
        const struct mw_fact *f = &first[i].fact;

        if (i == 0 || f->block_bytes != first[i - 1].fact.block_bytes) {
            if (i > 0)
                page_html_row_end(to);
            page_html_row(to, units_size(text, sizeof text, f->block_bytes));
        }
        snprintf(text, sizeof text, "%.2f", f->value / 1e9);
        if (f->why_not != NULL)
            page_html_number(to, "-");
        else if (i != best)
            page_html_number(to, text);
        else
            fprintf(to, "<td class=\"n\"><strong>%s</strong></td>", text);
    }
    if (cells > 0)
        page_html_row_end(to);
    page_html_table_end(to);
    return cells;
}

static void write_fact(const struct page_fact *one, FILE *to)
{
    char *text = NULL;
    size_t n = 0;
    FILE *value = open_memstream(&text, &n);

    if (value == NULL)
        return;
    if (one->is_error)
        fprintf(value, "not complete: %s", one->fact.text);
    else
        doctor_print_value(value, &one->fact);
    fclose(value);
    page_html_row(to, one->is_error ? "This section" : one->fact.label);
    page_html_cell(to, text);
    page_html_row_end(to);
    free(text);
}

static void write_section(const struct page_fact *fact, size_t n, const char *caption, FILE *to)
{
    size_t cells = n, n_cell = 0;

    page_html_table(to, caption, "Figure|Value");
    for (size_t i = 0; i < n; i++) {
        if (!fact[i].is_error && fact[i].fact.depth > 0) {
            cells = cells == n ? i : cells;
            n_cell++;
            continue;
        }
        write_fact(&fact[i], to);
    }
    page_html_table_end(to);
    if (n_cell > 0)
        write_cells(fact + cells, n_cell, to);
}

void page_facts_html(const struct page_facts *f, FILE *to)
{
    static const struct {
        const char *section, *caption;
    } names[] = { { "memory", "Memory" },
                  { "disk", "The disk under the model" },
                  { "arithmetic", "Arithmetic" } };

    for (size_t s = 0; s < sizeof names / sizeof names[0]; s++) {
        size_t first = 0, n = 0;

        while (first < f->n && strcmp(f->fact[first].section, names[s].section) != 0)
            first++;
        while (first + n < f->n && strcmp(f->fact[first + n].section, names[s].section) == 0)
            n++;
        if (n > 0)
            write_section(f->fact + first, n, names[s].caption, to);
    }
}

void page_facts_json(const struct page_facts *f, FILE *to)
{
    struct doctor_print *p = calloc(1, sizeof *p);
    const char *section = NULL;

    if (p == NULL)
        return;
    doctor_print_open(p, to, true);
    for (size_t i = 0; i < f->n; i++) {
        const struct page_fact *one = &f->fact[i];
        struct err e = ERR_INIT;

        if (section != one->section)
            doctor_print_section(p, one->section);
        section = one->section;
        if (one->is_error) {
            err_set(&e, ERR_IO, "%s", one->fact.text);
            doctor_print_error(p, &e);
        } else {
            doctor_print_fact(p, &one->fact);
        }
    }
    doctor_print_close(p, f->is_complete);
    free(p);
}
