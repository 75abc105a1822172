/* See doctor_print.h. */
#include "config.h"

#include "src/doctor/doctor_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"

#define LABEL_AT 40 /* column of the values */

void doctor_print_open(struct doctor_print *p, FILE *to, bool is_json)
{
    *p = (struct doctor_print){ .to = to, .is_json = is_json };
    if (!is_json)
        return;
    json_start_stream(&p->json, to);
    json_object(&p->json, NULL);
}

static void print_value(FILE *to, const struct mw_fact *f)
{
    char text[24];

    if (f->why_not != NULL) {
        fprintf(to, "- (%s)", f->why_not);
        return;
    }
    switch (f->unit) {
    case MW_UNIT_TEXT: fputs(f->text, to); break;
    case MW_UNIT_BYTES: fputs(units_size(text, sizeof text, (uint64_t)f->value), to); break;
    case MW_UNIT_RATE: fputs(units_rate(text, sizeof text, f->value), to); break;
    case MW_UNIT_FLOPS: fprintf(to, "%.3g GFLOP/s", f->value / 1e9); break;
    case MW_UNIT_OPS: fprintf(to, "%.3g GOP/s", f->value / 1e9); break;
    case MW_UNIT_COUNT:
        fprintf(to, "%.*f", f->value < 10 && f->value != floor(f->value) ? 1 : 0, f->value);
        break;
    case MW_UNIT_SHARE: fprintf(to, "%.1f %%", f->value * 100); break;
    case MW_UNIT_SECONDS: fprintf(to, "%.3g ms", f->value * 1e3); break;
    }
    if (f->spread > 0)
        fprintf(to, ", spread %.0f %%", f->spread * 100);
}

void doctor_print_value(FILE *to, const struct mw_fact *f)
{
    if (f->why_not != NULL && f->unit != MW_UNIT_TEXT && f->text[0] != '\0') {
        fprintf(to, "%s (%s)", f->text, f->why_not);
        return;
    }
    print_value(to, f);
    if (f->unit != MW_UNIT_TEXT && f->text[0] != '\0')
        fprintf(to, ", %s", f->text);
}

static void json_value(struct json *j, const char *key, const struct mw_fact *f)
{
    char why[64], note[64];

    if (f->unit != MW_UNIT_TEXT && f->text[0] != '\0') {
        snprintf(note, sizeof note, "%s_note", key);
        json_string(j, note, f->text);
    }
    if (f->why_not != NULL) {
        json_null(j, key);
        snprintf(why, sizeof why, "%s_why", key);
        json_string(j, why, f->why_not);
    } else if (f->unit == MW_UNIT_TEXT) {
        json_string(j, key, f->text);
    } else if (f->unit == MW_UNIT_BYTES) {
        json_u64(j, key, (uint64_t)f->value);
    } else {
        json_double(j, key, f->value, 6);
    }
}

/* --- the table of direct reads --- */

static void json_table(struct doctor_print *p)
{
    struct json *j = &p->json;

    json_array(j, p->cell[0].key);
    for (int i = 0; i < p->n_cell; i++) {
        json_object(j, NULL);
        json_u64(j, "block_bytes", p->cell[i].block_bytes);
        json_u64(j, "depth", p->cell[i].depth);
        json_value(j, "bytes_s", &p->cell[i]);
        json_double(j, "spread", p->cell[i].spread, 3);
        json_end(j);
    }
    json_end(j);
}

/* One line per block size, one column per number of reads in flight, the best with a star. */
static void print_table(struct doctor_print *p)
{
    int best = 0;

    for (int i = 0; i < p->n_cell; i++)
        if (p->cell[i].value > p->cell[best].value)
            best = i;
    fprintf(p->to, "  %s, GB/s, by block and reads in flight (* the best)\n  %10s",
            p->cell[0].label, "");
    for (int i = 0; i < p->n_cell && p->cell[i].block_bytes == p->cell[0].block_bytes; i++)
        fprintf(p->to, " %7u ", p->cell[i].depth);
    for (int i = 0; i < p->n_cell; i++) {
        char size[16];

        if (i == 0 || p->cell[i].block_bytes != p->cell[i - 1].block_bytes)
            fprintf(p->to, "\n  %10s", units_size(size, sizeof size, p->cell[i].block_bytes));
        if (p->cell[i].why_not != NULL)
            fprintf(p->to, " %7s ", "-");
        else
            fprintf(p->to, " %7.2f%c", p->cell[i].value / 1e9, i == best ? '*' : ' ');
    }
    fputc('\n', p->to);
}

static void end_table(struct doctor_print *p)
{
    if (p->n_cell == 0)
        return;
    if (p->is_json)
        json_table(p);
    else
        print_table(p);
    p->n_cell = 0;
}

/* --- facts --- */

void doctor_print_fact(struct doctor_print *p, const struct mw_fact *f)
{
    if (f->depth > 0) {
        if (p->n_cell < DOCTOR_CELLS)
            p->cell[p->n_cell++] = *f;
        return;
    }
    end_table(p);
    if (p->is_json) {
        json_value(&p->json, f->key, f);
        return;
    }
    fprintf(p->to, "  %-*s", LABEL_AT - 2, f->label);
    doctor_print_value(p->to, f);
    fputc('\n', p->to);
    fflush(p->to);
}

void doctor_print_end_section(struct doctor_print *p)
{
    end_table(p);
    if (p->is_json && p->has_section)
        json_end(&p->json);
    p->has_section = false;
}

void doctor_print_section(struct doctor_print *p, const char *name)
{
    doctor_print_end_section(p);
    p->has_section = true;
    if (p->is_json)
        json_object(&p->json, name);
    else
        fprintf(p->to, "%s\n", name);
}

/* --- advice --- */

void doctor_print_list(struct doctor_print *p, const char *key, const char *label)
{
    end_table(p);
    p->list = label;
    if (p->is_json)
        json_array(&p->json, key);
}

/* Print a sentence in lines of at most 96 columns. */
static void print_folded(FILE *to, int indent, const char *text)
{
    int room = 96 - indent;

    while (*text != '\0') {
        int n = (int)strlen(text);

        if (n > room) {
            for (n = room; n > 0 && text[n] != ' '; n--)
                ;
            n = n > 0 ? n : room;
        }
        fprintf(to, "%*s%.*s\n", indent, "", n, text);
        text += n;
        text += *text == ' ';
    }
}

void doctor_print_advice(struct doctor_print *p, const char *key, const char *text)
{
    if (p->is_json) {
        json_object(&p->json, NULL);
        json_string(&p->json, "key", key);
        json_string(&p->json, "text", text);
        json_end(&p->json);
        return;
    }
    if (p->list != NULL) {
        fprintf(p->to, "%s%s\n", p->has_section ? "  " : "", p->list);
        p->list = NULL;
    }
    print_folded(p->to, p->has_section ? 4 : 2, text);
}

void doctor_print_end_list(struct doctor_print *p, const char *if_empty)
{
    if (p->is_json)
        json_end(&p->json);
    else if (p->list != NULL && if_empty != NULL)
        doctor_print_advice(p, "", if_empty);
    p->list = NULL;
}

void doctor_print_error(struct doctor_print *p, const struct err *e)
{
    end_table(p);
    if (p->is_json)
        json_string(&p->json, "error", e->what);
    else
        fprintf(p->to, "  not complete: %s\n", e->what);
}

void doctor_print_close(struct doctor_print *p, bool is_complete)
{
    doctor_print_end_section(p);
    if (!p->is_json)
        return;
    json_bool(&p->json, "complete", is_complete);
    json_end(&p->json);
    json_line(&p->json);
}
