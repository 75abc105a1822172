/*
 * doctor_print.h - the facts of `memwall doctor`, as text or as one JSON object.
 *
 * Text has sizes in GiB and rates in GB/s.  JSON has exact numbers;
 * a fact that is not known is null, and KEY_why has the reason.
 */
#ifndef MEMWALL_SRC_DOCTOR_DOCTOR_PRINT_H
#define MEMWALL_SRC_DOCTOR_DOCTOR_PRINT_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

#define DOCTOR_CELLS 16

struct doctor_print {
    FILE *to;
    bool is_json;
    struct json json;
    struct mw_fact cell[DOCTOR_CELLS]; /* of the table that is being collected */
    int n_cell;
    const char *list; /* label of the list of advice; NULL once it was printed */
    bool has_section;
};

/* Print the value of a fact that has no cell of the table, or a dash with the reason. */
void doctor_print_value(FILE *to, const struct mw_fact *f);

void doctor_print_open(struct doctor_print *p, FILE *to, bool is_json);
/* Begin a section, "memory", "disk", "arithmetic", "walls" or "model"; end the one before. */
void doctor_print_section(struct doctor_print *p, const char *name);
void doctor_print_fact(struct doctor_print *p, const struct mw_fact *f);
/* Print that a section could not be completed, and why. */
void doctor_print_error(struct doctor_print *p, const struct err *e);
/* End the section that was begun last.  Nothing happens without one. */
void doctor_print_end_section(struct doctor_print *p);

/* A list of advice, in the section that is open or after all of them.  As text, an empty list
 * is the sentence if_empty under its label, and nothing at all if that is NULL. */
void doctor_print_list(struct doctor_print *p, const char *key, const char *label);
void doctor_print_advice(struct doctor_print *p, const char *key, const char *text);
void doctor_print_end_list(struct doctor_print *p, const char *if_empty);

void doctor_print_close(struct doctor_print *p, bool is_complete);

#endif
