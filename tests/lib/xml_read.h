/*
 * xml_read.h - checks that a text is well-formed XML, for tests of what the program draws.
 */
#ifndef MEMWALL_TESTS_LIB_XML_READ_H
#define MEMWALL_TESTS_LIB_XML_READ_H

#include <stddef.h>

/* Fail the cmocka test with the rest of the text unless it is one well-formed element with
 * unique ids, entities of XML only, and all ids that aria attributes name. */
void xml_assert(const char *text);

/* Count the places where needle is in all. */
size_t xml_count(const char *all, const char *needle);

#endif
