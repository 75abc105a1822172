/*
 * tree.h - folders and files for a test.
 */
#ifndef MEMWALL_TESTS_LIB_TREE_H
#define MEMWALL_TESTS_LIB_TREE_H

#include <stddef.h>

/* Make an empty folder below $TMPDIR.  Returns its path, valid until the next call. */
const char *tree_new(void);

/* Write text to root + path, and make the folders that it needs. */
void tree_put(const char *root, const char *path, const char *text);

/* Remove a folder of tree_new() and everything in it. */
void tree_remove(const char *root);

#endif
