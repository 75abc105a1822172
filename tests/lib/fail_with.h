/*
 * fail_with.h - end a test with the message of an error that it did not expect.
 *
 * Include cmocka.h first.
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

/* End the test if a call that sets e has failed. */
static inline void no_error(int result, const struct err *e)
{
    if (result != 0)
        fail_with(e);
}

#endif
