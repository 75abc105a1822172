/*
 * psi.h - pressure: the share of the last ten seconds in which some task waited.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PSI_H
#define MEMWALL_ENGINE_MACHINE_PSI_H

#include <stdbool.h>

#include "engine/machine/kernel_file.h"

/*
 * Read "some avg10" of a pressure file in hundredths of a percent.  The result is not valid
 * for fd -1 and for files that return EOPNOTSUPP, which means that pressure is switched off.
 */
struct mw_os_value psi_some10(int fd);

/* The same for the text of the file. */
struct mw_os_value psi_parse(const char *text);

/* The time since the start of the machine in which some tasks, and in which all of them, waited:
 * in microseconds. */
struct psi_total {
    uint64_t some_us, full_us;
};

/* Read both totals of a pressure file.  Returns false, with *out all zero, as psi_some10() is not
 * valid. */
bool psi_read_total(int fd, struct psi_total *out);

/* The same for the text of the file. */
bool psi_parse_total(const char *text, struct psi_total *out);

#endif
