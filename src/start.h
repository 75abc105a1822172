/*
 * start.h - what the process needs before anything else runs, whoever started it and with
 * whatever descriptors, signals and limits.
 */
#ifndef MEMWALL_SRC_START_H
#define MEMWALL_SRC_START_H

/*
 * Prepare the process, then return run(argc, argv).
 *
 * - Descriptors 0 to 2 are open, so that no file of ours gets their numbers.  A closed
 *   standard input reads as empty, a closed standard error swallows what is written, and
 *   writing to a closed standard output fails as it did.
 * - A closed pipe and a file size limit (ulimit -f) are errors of write(2), not signals.
 * - run has a stack of several MiB even where `ulimit -s` allows less.
 *
 * Returns EXIT_FAILED with a message if the stack cannot be had.
 */
int start_process(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
