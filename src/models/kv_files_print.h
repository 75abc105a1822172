/*
 * kv_files_print.h - the keys and values of saved chats, as a list.
 */
#ifndef MEMWALL_SRC_MODELS_KV_FILES_PRINT_H
#define MEMWALL_SRC_MODELS_KV_FILES_PRINT_H

#include <stdbool.h>

#include "engine/base/err.h"

/* Print the KV files in the cache folder, the last used one first.  Returns 0, or -1 with *e.
 */
int kv_files_print(bool json, struct err *e);

#endif
