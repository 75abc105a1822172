/* defaults.h - the values of a model that its file leaves out. */
#ifndef MEMWALL_ENGINE_FORMAT_DEFAULTS_H
#define MEMWALL_ENGINE_FORMAT_DEFAULTS_H

#include <stdint.h>

#define MAX_DEFAULT 24

struct default_value {
    const char *name; /* of the key without its architecture, or of the field; a constant */
    double value;
};

struct default_list {
    uint32_t n;
    struct default_value v[MAX_DEFAULT];
};

/* Note a default.  0 and 1 are listed, too: the file may have lost a part or a factor that its
 * model has.  d may be NULL. */
void defaults_note(struct default_list *d, const char *name, double value);

/* Forget a default: another place states the value. */
void defaults_drop(struct default_list *d, const char *name);

#endif
