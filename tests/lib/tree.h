/*
 * tree.h - folders and files for a test, made and removed again.
 */
#ifndef MEMWALL_TESTS_LIB_TREE_H
#define MEMWALL_TESTS_LIB_TREE_H

#include <stddef.h>

/* A new empty folder below $TMPDIR; its path in static storage until the next call. */
const char *tree_new(void);

/* Write text to root + path, folders on the way included. */
void tree_put(const char *root, const char *path, const char *text);

/* Remove a tree of tree_new() with all that is in it. */
void tree_remove(const char *root);

#endif
