/*
 * gguf_lookup.h - values of a model from GGUF keys, under every name that converters use.
 *
 * Most keys are "ARCH.something".  Converters other than llama.cpp's have names of their own
 * for some of them; gguf_lookup.c lists these.  The first wrong key is kept in the lookup; the
 * rest of its group then returns minimums, so a list of lookups needs no checks in between.
 * Values that the file leaves out are noted in the catalogue's list of defaults.
 */
#ifndef MEMWALL_ENGINE_FORMAT_GGUF_LOOKUP_H
#define MEMWALL_ENGINE_FORMAT_GGUF_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/defaults.h"
#include "engine/format/gguf.h"

#define GGUF_NEEDED INT64_MIN /* for absent: the key is required */

/* The keys that were looked up and that the file lacks. */
#define MAX_ABSENT 96
struct absent_list {
    uint32_t n;
    const char *suffix[MAX_ABSENT]; /* constants */
};

struct gguf_lookup {
    const struct gguf *g;
    const char *prefix; /* ARCH as the file has it */
    struct default_list *defaults;
    struct absent_list *absent; /* or NULL */
    struct err *e;
    bool failed;
    char key[128]; /* the last one */
};

/* Returns ARCH, the general.architecture of the file; "" if it has none. */
const char *gguf_prefix(const struct gguf *g);

/* Write the key with this suffix to buf, under the name that the file uses for it; the usual
 * name if the file does not have it.  Returns the value, or NULL. */
const struct gguf_value *gguf_find_suffix(const struct gguf *g, const char *prefix,
                                          const char *suffix, char *buf, size_t n);

/* Returns whether the keys of rope are those of Ollama's converter: it leaves out the base of
 * global layers, or names one of sliding layers in its own way. */
bool gguf_is_ollama_rope(const struct gguf *g, const char *prefix);

/* Returns the usual suffix of a key that other converters name like this, or NULL. */
const char *gguf_usual_suffix(const char *other);

/* Returns the value of a key, or NULL; l->key is its name.  suffix is a constant. */
const struct gguf_value *lookup_find(struct gguf_lookup *l, const char *suffix);

/* An integer from min to max.  Converters that do not know a value write 0, so a 0 below min
 * means that the key is absent. */
int64_t lookup_int(struct gguf_lookup *l, const char *suffix, int64_t min, int64_t max,
                   int64_t absent);
/* A number from min to max.  If absent is NaN, the key is required. */
double lookup_float(struct gguf_lookup *l, const char *suffix, double min, double max,
                    double absent);
/* The same for numbers of rope scaling, which converters write as 0 if they do not know them.
 */
double lookup_scaling(struct gguf_lookup *l, const char *suffix, double min, double max,
                      double absent);
bool lookup_bool(struct gguf_lookup *l, const char *suffix, bool absent);
/* A text; NULL if it is absent or empty. */
const char *lookup_text(struct gguf_lookup *l, const char *suffix);

/* Reads out[n_layer], stated once for all layers, or once per layer of n_all. */
void lookup_per_layer(struct gguf_lookup *l, const char *suffix, uint32_t n_layer,
                      uint32_t n_all, int64_t min, int64_t max, int64_t absent, int64_t *out);

/* Refuse the last key.  The message is already in l->e. */
void lookup_fail(struct gguf_lookup *l);
/* Refuse the last key because it is missing. */
void lookup_missing(struct gguf_lookup *l);

#endif
