/*
 * build_name.h - a name that another program code does not have.
 *
 * A clone of the repository has the same version for many commits.  So files whose content
 * depends on what this program computes are also marked with the linker's identifier of the
 * program file, which follows from its code.
 */
#ifndef MEMWALL_ENGINE_BASE_BUILD_NAME_H
#define MEMWALL_ENGINE_BASE_BUILD_NAME_H

#include <stddef.h>

#define BUILD_NAME_BYTES 64

/* Write "0.1.0 5b3f01c2d4e6a798": the version of the build, and a part of the identifier if the
 * program has one. */
void build_name(char buf[BUILD_NAME_BYTES]);

#endif
