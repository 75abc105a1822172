/* See limits_print.h. */
#include "config.h"

#include "src/machine/limits_print.h"

#include <time.h>

void limits_print(FILE *to, int at, const struct mw_model *m)
{
    char text[MW_LIMITS_TEXT];
    struct mw_limits l;

    mw_model_limits(m, &l);
    mw_limits_text(&l, (int64_t)time(NULL), text, sizeof text);
    fprintf(to, "%-*s%s\n", at, "limits", text);
}

static void json_steps(struct json *j, const struct mw_steps *s)
{
    json_object(j, "steps");
    json_double(j, "round_s", s->round_s, 12);
    json_double(j, "wake_s", s->wake_s, 12);
    json_double(j, "value_s", s->value_s, 15);
    json_double(j, "curve_s", s->curve_s, 15);
    for (int i = 0; i < MW_STEPS_KV; i++) {
        json_object(j, mw_kv_name((enum mw_kv)i));
        json_double(j, "load_s", s->load_s[i], 15);
        json_double(j, "mac_s", s->mac_s[i], 15);
        json_end(j);
    }
    json_bool(j, "doubtful", s->is_doubtful);
    json_u64(j, "measured", (uint64_t)s->measured_s);
    json_end(j);
}

void limits_json(struct json *j, const struct mw_limits *l)
{
    json_object(j, "limits");
    json_double(j, "disk_bytes_s", l->disk_bytes_s, 6);
    if (l->mirror_bytes_s > 0)
        json_double(j, "mirror_bytes_s", l->mirror_bytes_s, 6);
    json_double(j, "memory_bytes_s", l->memory_bytes_s, 6);
    json_double(j, "fresh_bytes_s", l->fresh_bytes_s, 6);
    json_double(j, "direct_bytes_s", l->direct_bytes_s, 6);
    json_double(j, "buffered_bytes_s", l->buffered_bytes_s, 6);
    json_double(j, "lookup_s", l->lookup_s, 6);
    json_double(j, "read_cpu_s", l->read_cpu_s, 15);
    json_double(j, "contention", l->contention, 3);
    json_steps(j, &l->steps);
    json_bool(j, "doubtful", l->is_doubtful);
    json_u64(j, "measured", (uint64_t)l->measured_s);
    json_array(j, "rates");
    for (uint32_t i = 0; i < l->n_rate; i++) {
        const struct mw_rate *r = &l->rate[i];

        json_object(j, NULL);
        json_string(j, "type", r->type);
        json_u64(j, "measured", (uint64_t)r->measured_s);
        json_bool(j, "doubtful", r->is_doubtful);
        json_double(j, "column_bytes_s", r->column_bytes_s, 6);
        json_double(j, "chunk_flops_s", r->chunk_flops_s, 6);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}
