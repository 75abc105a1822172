/*
 * golden.h - pictures in tests/data.
 */
#ifndef MEMWALL_TESTS_LIB_GOLDEN_H
#define MEMWALL_TESTS_LIB_GOLDEN_H

/* Assert that tests/data/FOLDER/NAME.txt has this text.  With UPDATE_GOLDEN in the environment,
 * write the text to the file first. */
void golden_assert(const char *folder, const char *name, const char *text);

#endif
