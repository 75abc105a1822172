/*
 * page_facts.h - the facts of `memwall doctor`, collected for a report.
 *
 * A report is shown to others.  The name of the machine, the name of the user and the folders
 * of paths are removed from every text.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_FACTS_H
#define MEMWALL_SRC_REPORT_PAGE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/memwall.h"

struct page_fact {
    const char *section; /* "memory" */
    struct mw_fact fact; /* for an error: text alone */
    bool is_error;
};

struct page_facts {
    struct page_fact *fact; /* [n] */
    size_t n, room;
    const char *section;
    bool is_complete;
};

struct page_facts_how {
    const struct mw_model *m; /* NULL: none */
    const char *folder;       /* where a file to read is written, without a model */
    bool no_disk;
    void (*step)(void *ctx, const char *doing);
    void *ctx;
    const _Atomic bool *cancelled;
};

/* Measure.  A figure that could not be measured is a fact with a reason.  -1 with *e: out of
 * memory. */
int page_facts_measure(struct page_facts *f, const struct page_facts_how *how, struct err *e);
void page_facts_free(struct page_facts *f);

void page_facts_html(const struct page_facts *f, FILE *to);
/* One JSON object, as of `memwall doctor --json`, and a newline. */
void page_facts_json(const struct page_facts *f, FILE *to);

/* Remove the name of the machine, that of the user, and folders of paths from a text. */
void page_facts_hide(char *text);

#endif
