/*
 * find_record.h - what is known about a model file, and a file that keeps it.
 *
 * Reading the header of a model with a large vocabulary takes some 50 ms, which is too long for
 * a list of hundreds.  A record holds for files that did not change, for the options that its
 * plan was made with, and for one build of the program.
 */
#ifndef MEMWALL_ENGINE_HUB_FIND_RECORD_H
#define MEMWALL_ENGINE_HUB_FIND_RECORD_H

#include "engine/hub/find.h"
#include "engine/plan/input.h"

struct record {
    struct find_id id;
    uint64_t options; /* a hash of those that the plan input depends on */
    char arch[32], type[16];
    uint32_t n_ctx_train, runs; /* runs: memwall can run it */
    uint64_t n_param;
    char why[200];           /* the reason why it does not run */
    struct mw_read_sizes sizes;
    struct plan_input input; /* without limits */
};

struct record_list {
    struct record *records;
    size_t n, n_room;
    size_t n_new; /* added in this run */
};

/* Read the file; a file that is missing, damaged or of another build is an empty list. */
void record_list_read(struct record_list *list, const char *file);

/* Returns the record of these files and options, or NULL.  Valid until a record is added. */
const struct record *record_find(const struct record_list *list, const struct find_id *id,
                                 uint64_t options);
/* Add a copy, or replace the record of the same files and options.  Does nothing if memory is
 * short. */
void record_add(struct record_list *list, const struct record *r);

/* Write the list to the file if it has new records. */
void record_list_write(const struct record_list *list, const char *file);
void record_list_free(struct record_list *list);

#endif
