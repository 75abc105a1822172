/*
 * fields.h - the names of all figures in JSON lines, as one table.
 *
 * Writer, reader and the test of the manual page walk the same rows, so a field has one
 * name.  A line is one object: {"event":…, "t_ns":…, "GROUP":{"KEY":value, …}, …}.  The
 * line of a token has its figures without a group.
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
    FIELD_TEXT,  /* char[size], ends with NUL */
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
    const char *group; /* "" is the line itself */
    const char *key;
    size_t offset; /* in struct mw_sample; of a token or layer row, in that struct */
    size_t size;   /* of FIELD_TEXT */
    enum field_type type;
    unsigned events;
};

/* Rows of one group stand together. */
extern const struct field sample_fields[];
extern const size_t n_sample_fields;
extern const struct field token_fields[];
extern const size_t n_token_fields;
extern const struct field layer_fields[];
extern const size_t n_layer_fields;

/* Names of the rates that are written beside (group "rate") and never read back. */
extern const char *const rate_names[];
extern const size_t n_rate_names;

#endif
