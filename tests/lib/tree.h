/*
 * tree.h - a folder for the files of a test.
 */
#ifndef MEMWALL_TESTS_LIB_TREE_H
#define MEMWALL_TESTS_LIB_TREE_H

/* The folder of the running test, below $TMPDIR. */
extern char tree_root[512];

/* Set-up and tear-down of a test: make the folder, remove it with everything in it. */
int tree_make(void **state);
int tree_drop(void **state);

/* Remove any folder with everything in it.  Returns 0, or -1 with errno. */
int tree_remove(const char *folder);

/* Returns tree_root + path; valid for four calls. */
const char *tree_path(const char *path);

/* Write text to tree_root + path, and make the folders that it needs. */
void tree_put(const char *path, const char *text);

#endif
