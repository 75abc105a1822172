/*
 * attached.h - the files at the start of a message.
 *
 * The model gets them as part of the text.  The screen folds them into one line with a label.
 */
#ifndef MEMWALL_UI_STORE_ATTACHED_H
#define MEMWALL_UI_STORE_ATTACHED_H

#include <stdint.h>

struct attached {
    uint32_t bytes;  /* of the text; 0: no file */
    char label[128]; /* "notes.txt, 1.2 KiB, 312 tokens" */
};

#endif
