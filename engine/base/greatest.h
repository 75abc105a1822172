/* greatest.h - the greatest of many numbers. */
#ifndef MEMWALL_ENGINE_BASE_GREATEST_H
#define MEMWALL_ENGINE_BASE_GREATEST_H

#include <stdint.h>

/* Returns the index of the greatest of x[n], of equal ones the first.  n is at least 1.  A value
 * that is not a number is never the greatest if there is another one. */
uint32_t greatest_of(const float *x, uint32_t n);

#endif
