/*
 * psi.h - pressure: the share of the last ten seconds in which something waited.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PSI_H
#define MEMWALL_ENGINE_MACHINE_PSI_H

#include "engine/machine/kernel_file.h"

/*
 * "some avg10" of a pressure file in hundredths of a percent.  fd -1 and files that say
 * EOPNOTSUPP (pressure is switched off) are not valid.
 */
struct mw_os_value psi_some10(int fd);

/* The same of a file's text. */
struct mw_os_value psi_parse(const char *text);

#endif
