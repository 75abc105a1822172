/* kv_folder.h - a folder for the KV files of a test. */
#ifndef MEMWALL_TESTS_LIB_KV_FOLDER_H
#define MEMWALL_TESTS_LIB_KV_FOLDER_H

/* The folder, and a file in it. */
extern char kv_folder[400], kv_path[440];

/* For cmocka_run_group_tests(): make the folder, and remove it with all of its files. */
int kv_folder_begin(void **state);
int kv_folder_end(void **state);

/* Remove its files. */
void kv_folder_clean(void);

/* Let files of this process grow to n bytes; RLIM_INFINITY: as they like. */
void kv_folder_limit(unsigned long n);

#endif
