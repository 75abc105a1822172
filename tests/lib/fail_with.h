/*
 * fail_with.h - a test ends with the words of an error that it did not expect.
 *
 * Wants cmocka.h before it.
 */
#ifndef MEMWALL_TESTS_LIB_FAIL_WITH_H
#define MEMWALL_TESTS_LIB_FAIL_WITH_H

#include "engine/base/err.h"

static inline void fail_with(const struct err *e)
{
    char text[600];

    err_text(e, text, sizeof text);
    fail_msg("%s", text);
}

#endif
