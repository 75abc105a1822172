/*
 * page.h - a report of this machine and a model, as one page of HTML.
 *
 * The parts are filled by commands/report.c; a part that is missing is left out, with a note.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_H
#define MEMWALL_SRC_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/measure/results.h"
#include "src/report/page_facts.h"
#include "src/report/page_plan.h"
#include "src/report/page_track.h"

#define PAGE_NOTES 8

struct page {
    char file[128]; /* of the model, without its folder; "": no model */
    struct mw_machine machine;
    struct page_facts facts;
    struct page_plan *plan; /* NULL: no model */
    struct results bench, sweep;     /* n_point 0: none */
    bool is_own_bench, is_own_sweep; /* measured while the report was made */
    struct track *track;             /* NULL: none */
    bool is_own_track;               /* recorded while the report was made */
    char note[PAGE_NOTES][256];      /* what is missing, and why */
    size_t n_note;
    bool is_stopped;
    int64_t made_s; /* Unix time */
};

/* Add a note. */
void page_note(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Write the page.  The caller checks `to` for errors. */
void page_write(const struct page *p, FILE *to);

/* The decoding speed of the bench point that has the budget of the plan, measured and
 * predicted; false if there is none. */
bool page_decode(const struct page *p, double *measured, double *predicted);

/* Write the summary: the figures in plain words. */
void page_words(const struct page *p, FILE *to);

#endif
