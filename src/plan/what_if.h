/*
 * what_if.h - plan for a machine that one does not have: --what-if RAM=8G,DISK=500M/s,...
 */
#ifndef MEMWALL_SRC_PLAN_WHAT_IF_H
#define MEMWALL_SRC_PLAN_WHAT_IF_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/* A machine that differs from this one.  0: as this one. */
struct what_if {
    uint64_t ram_bytes;
    uint64_t disk_bytes_s, memory_bytes_s;
    int n_core;
};

/* Parse "RAM=8G,DISK=500M/s,BW=40G/s,CORES=4": any of them, in any order.  Returns 0, or -1
 * with *e for the user. */
int what_if_parse(const char *text, struct what_if *out, struct err *e);

/* Change the limits of m, and the threads and the budget of o, if it has none.  A budget that
 * the machine does not have is lowered. */
void what_if_apply(const struct what_if *w, struct mw_model *m, struct mw_options *o);

/* Print the machine and what is assumed of it. */
void what_if_print(FILE *to, const struct what_if *w);

/* Write the member "what_if". */
void what_if_json(struct json *j, const struct what_if *w);

#endif
