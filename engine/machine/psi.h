/*
 * psi.h - pressure: the share of the last ten seconds in which some task waited.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PSI_H
#define MEMWALL_ENGINE_MACHINE_PSI_H

#include "engine/machine/kernel_file.h"

/*
 * Read "some avg10" of a pressure file in hundredths of a percent.  The result is not valid
 * for fd -1 and for files that return EOPNOTSUPP, which means that pressure is switched off.
 */
struct mw_os_value psi_some10(int fd);

/* The same for the text of the file. */
struct mw_os_value psi_parse(const char *text);

#endif
