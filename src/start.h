/*
 * start.h - prepare the process, independent of the descriptors, signals and limits that the
 * parent process left to it.
 */
#ifndef MEMWALL_SRC_START_H
#define MEMWALL_SRC_START_H

/*
 * Prepare the process, then return run(argc, argv).
 *
 * - Opens descriptors 0 to 2 if they are closed, so that other files do not get these numbers.
 *   A closed standard input reads as empty, output to a closed standard error is discarded,
 *   and writing to a closed standard output fails as before.
 * - Makes a closed pipe and a file size limit (ulimit -f) errors of write(2), not signals.
 * - Gives run a stack of several MiB even if `ulimit -s` is lower.
 *
 * Returns EXIT_FAILED with a message if the stack cannot be allocated.
 */
int start_process(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
