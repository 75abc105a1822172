/*
 * fields.h - one table with the names of all figures in JSON lines.
 *
 * The writer, the reader and the test of the man page use the same table, so each field has
 * one name.  A line is one object: {"event":…, "t_ns":…, "GROUP":{"KEY":value, …}, …}.  The
 * line of a token has no groups.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_FIELDS_H
#define MEMWALL_ENGINE_TELEMETRY_FIELDS_H

#include <stddef.h>

#include "engine/telemetry/sample.h"

#define TELEMETRY_VERSION 1

enum field_type {
    FIELD_U64,
    FIELD_U32,
    FIELD_DOUBLE,
    FIELD_TEXT,  /* char[size] that ends with NUL */
    FIELD_HEX,   /* uint8_t[size], as two hexadecimal digits each; zeros at the end are left out
                  */
    FIELD_LIST,  /* uint64_t[size], as an array of numbers; zeros at the end are left out */
    FIELD_STATE, /* enum mw_state by name */
    FIELD_BINDS, /* enum mw_binds by name */
    FIELD_KIND,  /* uint8_t, enum mw_layer_kind by name */
    FIELD_OS,    /* struct mw_os_value: a number, or null and a reason in "os_why" */
};

enum field_event {
    IN_START = 1, /* lines "start" and "plan" */
    IN_SECOND = 2,
    IN_ALL = IN_START | IN_SECOND,
};

struct field {
    const char *group; /* "" for the line itself */
    const char *key;
    size_t offset; /* in struct mw_sample, mw_token, mw_sample_layer or mw_thread */
    size_t size;   /* of FIELD_TEXT, FIELD_HEX and FIELD_LIST */
    enum field_type type;
    unsigned events;
};

/* Fields of one group are adjacent. */
extern const struct field sample_fields[];
extern const size_t n_sample_fields;
extern const struct field token_fields[];
extern const size_t n_token_fields;
extern const struct field layer_fields[];
extern const size_t n_layer_fields;
extern const struct field thread_fields[];
extern const size_t n_thread_fields;

/* Names of the rates in the group "rate", which is written but never read. */
extern const char *const rate_names[];
extern const size_t n_rate_names;

#endif
