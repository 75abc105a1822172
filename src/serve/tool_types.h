/*
 * tool_types.h - the types that an argument may have by the definition of its tool.
 */
#ifndef MEMWALL_SRC_SERVE_TOOL_TYPES_H
#define MEMWALL_SRC_SERVE_TOOL_TYPES_H

#include "engine/memwall.h"

#define TOOL_MAY_BE_TEXT  1u
#define TOOL_MAY_BE_NULL  2u
#define TOOL_MAY_BE_TRUTH 4u
#define TOOL_MAY_BE_MORE  8u /* a number, an object or a list */
#define TOOL_MAY_BE_ANY   15u

/* The types of a schema.  parameters: the schema of the tool, for references.  Limits of a value
 * other than its type, such as a pattern, do not count. */
unsigned tool_types_of(const struct json_node *schema, const struct json_node *parameters);
/* The types of the parameter of this name, of n bytes. */
unsigned tool_parameter_types(const struct json_node *parameters, const char *name, size_t n);

#endif
