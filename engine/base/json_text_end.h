/*
 * json_text_end.h - the end of a JSON text that yajl parses.
 *
 * yajl_complete_parse() accepts a complete text after which a string begins and does not end:
 * {} "abc.  A line end is invalid inside any string and white space elsewhere, so it shows one.
 */
#ifndef MEMWALL_ENGINE_BASE_JSON_TEXT_END_H
#define MEMWALL_ENGINE_BASE_JSON_TEXT_END_H

#include <yajl/yajl_parse.h>

/* Call it in place of yajl_complete_parse(). */
static inline yajl_status json_text_end(yajl_handle h)
{
    yajl_status status = yajl_complete_parse(h);

    return status == yajl_status_ok ? yajl_parse(h, (const unsigned char *)"\n", 1) : status;
}

#endif
