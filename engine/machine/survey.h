/*
 * survey.h - facts about memory, a disk and the processors that Linux reports.
 *
 * Nothing is measured.  A file that is missing or may not be read makes its fact unknown, with
 * the reason.  root is "" for the real system.
 */
#ifndef MEMWALL_ENGINE_MACHINE_SURVEY_H
#define MEMWALL_ENGINE_MACHINE_SURVEY_H

#include "engine/machine/fact.h"

void survey_memory(const char *root, mw_fact_fn *fn, void *ctx);
/* The file system and the device under the open file or folder fd. */
void survey_disk(const char *root, int fd, mw_fact_fn *fn, void *ctx);
void survey_processor(const char *root, mw_fact_fn *fn, void *ctx);

#endif
