/* Commands that show help and figures. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/talk/change_sheet.h"
#include "ui/talk/command_list.h"
#include "ui/text/sheet.h"
#include "ui/words/budget.h"
#include "ui/words/clean.h"
#include "ui/words/disks.h"
#include "ui/words/receipt.h"
#include "ui/words/server.h"

/* ---- figures ---- */

/* The first answer is being made: say what its newest tokens wait for. */
static void say_so_far(struct talk *t, const struct mw_sample *s)
{
    struct mw_diagnosis d;
    char rate[24];

    mw_diagnosis_of_sample(s, &d);
    if (d.is_measured)
        talk_notice(t, "the first answer goes on; its newest tokens: %s tok/s, %s",
                    numbers_measured(rate, sizeof rate, d.tps), mw_diagnosis_label(&d));
    else
        talk_notice(t, "the first answer has no measured token yet");
}

void run_why(struct talk *t, const char *args)
{
    struct mw_sample *s = malloc(sizeof *s);
    char text[1024];

    (void)args;
    if (s == NULL)
        return;
    talk_sample(t, s);
    if (talk_last(t) == NULL && talk_is_answering(t))
        say_so_far(t, s);
    else if (talk_last(t) == NULL)
        talk_error(t, "there is no answer yet");
    else
        talk_notice(t, "%s", receipt_why(text, sizeof text, talk_last(t),
                                         talk_promised_tps(t), s));
    free(s);
}

static void size_row(struct sheet *sheet, const char *name, uint64_t a, uint64_t b)
{
    char x[16], y[16];

    sheet_line(sheet, ROLE_TEXT, "%-14s %10s %10s", name, units_size(x, sizeof x, a),
               units_size(y, sizeof y, b));
}

void run_plan(struct talk *t, const char *args)
{
    struct mw_sample *s = malloc(sizeof *s);
    struct sheet *sheet = talk_has_plan(t) ? sheet_new("Plan", NULL) : NULL;
    const struct plan *plan = talk_plan(t);
    uint64_t used = 0;
    struct mw_diagnosis d;
    char ctx[24], rate[24], streamed[16], hot[16], experts[128], line[128];
    char drafts[MW_NO_DRAFTER_TEXT], assumed[48] = "";

    (void)args;
    if (s == NULL || sheet == NULL) {
        if (!talk_has_plan(t))
            talk_error(t, TALK_NO_PLAN);
        free(s);
        sheet_free(sheet);
        return;
    }
    talk_sample(t, s);
    sheet_line(sheet, ROLE_DIM, "%-14s %10s %10s", "", "planned", "held now");
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        if (plan->row[i] != 0 || s->mem.used[i] != 0)
            size_row(sheet, mw_plan_row_label((enum mw_plan_row)i), plan->row[i],
                     s->mem.used[i]);
        used += s->mem.used[i];
    }
    size_row(sheet, "total", plan->sum_bytes, used);
    size_row(sheet, "budget", plan->budget_bytes, s->run.budget_bytes);
    if (budget_is_elastic(s)) {
        sheet_line(sheet, ROLE_TEXT, "%s", budget_last(line, sizeof line, s));
        sheet_line(sheet, ROLE_TEXT, "%s", budget_next(line, sizeof line, s));
    }
    sheet_gap(sheet);
    sheet_line(sheet, ROLE_TEXT, "context %s tokens, prompts in chunks of %u",
               numbers_count(ctx, sizeof ctx, plan->n_ctx), plan->chunk);
    if (plan->n_slot > 0)
        sheet_more(sheet, ROLE_TEXT, ", %u read buffers", plan->n_slot);
    sheet_line(sheet, ROLE_TEXT, "a %s reads %s of the %s of weights it uses",
               plan->assumed > 0 ? "pass" : "token",
               units_size(streamed, sizeof streamed, plan->streamed_bytes - plan->kv_read_bytes),
               units_size(hot, sizeof hot, talk_info(t)->hot_bytes));
    if (plan->has_kv_disk)
        sheet_line(sheet, ROLE_TEXT, "%s", receipt_kv_disk(line, sizeof line, plan));
    if (mw_plan_no_drafter(talk_model(t), &talk_options(t)->engine, plan, drafts,
                           sizeof drafts)[0] != '\0')
        sheet_text(sheet, ROLE_TEXT, drafts);
    if (plan->n_expert_all > 0)
        sheet_line(sheet, ROLE_TEXT, "%s", receipt_experts(experts, sizeof experts, plan));
    mw_diagnosis_of_sample(s, &d);
    if (d.assumed > 0)
        snprintf(assumed, sizeof assumed, " if %.0f %% of the drafts are right", 100 * d.assumed);
    if (d.tps > 0)
        sheet_line(sheet, ROLE_TEXT, "%s%s%s tok/s%s, %s",
                   d.is_measured ? "measured     " : "predicted    ", d.is_measured ? "" : "~",
                   d.is_measured ? numbers_measured(rate, sizeof rate, d.tps)
                                 : numbers_rough(rate, sizeof rate, d.tps),
                   assumed, mw_diagnosis_label(&d));
    if (!d.is_measured)
        limits_line(t, sheet, talk_options(t)->engine.disk_rate);
    free(s);
    talk_show(t, sheet);
}

static void value_row(struct sheet *sheet, const char *name, const struct mw_os_value *v)
{
    char size[16];

    if (v->why_not != NULL)
        sheet_line(sheet, ROLE_DIM, "%-16s - (%s)", name, v->why_not);
    else
        sheet_line(sheet, ROLE_TEXT, "%-16s %10s", name,
                   units_size(size, sizeof size, v->value));
}

/* Show both shares: the receipt has the share of the answer, the dashboard that of the newest
 * tokens. */
static void wait_row(struct sheet *sheet, const struct talk *t, double newest)
{
    const struct mw_receipt *r = talk_is_answering(t) ? NULL : talk_last(t);

    if (r != NULL && r->decode_ns > 0)
        sheet_line(sheet, ROLE_TEXT,
                   "waits for disk   %.0f %% of the answer, the newest tokens %.0f %%",
                   receipt_stall_share(r) * 100, newest * 100);
    else
        sheet_line(sheet, ROLE_TEXT, "waits for disk   the newest tokens %.0f %%",
                   newest * 100);
}

static void rate_rows(struct sheet *sheet, const struct talk *t, const struct mw_sample *s)
{
    struct mw_rates r;
    char rate[24];

    mw_rates(s, &r);
    if (r.decode_mean > 0)
        sheet_line(sheet, ROLE_TEXT, "decoding         %.2f tok/s, the newest tokens %.2f",
                   r.decode_mean, r.decode_last);
    if (r.prefill > 0)
        sheet_line(sheet, ROLE_TEXT, "prompt           %.1f tok/s", r.prefill);
    if (r.stall_share >= 0)
        wait_row(sheet, t, r.stall_share);
    else if (mw_run_is_mapped(&s->run))
        sheet_line(sheet, ROLE_TEXT, "waits for disk   - (the kernel reads mapped weights)");
    if (r.read_bytes_s > 0)
        sheet_line(sheet, ROLE_TEXT, "reads            %s",
                   units_rate(rate, sizeof rate, r.read_bytes_s));
}

static void say_saved(struct talk *t, struct sheet *sheet)
{
    if (saving_path(talk_saving(t))[0] != '\0')
        sheet_line(sheet, ROLE_DIM, "%s in %s",
                   talk_saving(t)->state == SAVING_WORKS ? "saved" : "not all saved",
                   saving_path(talk_saving(t)));
}

/* Show what a server reports, and what was measured here. */
static void show_server(struct talk *t, const struct mw_server_figures *f)
{
    struct sheet *sheet = sheet_new("Statistics", NULL);
    struct server_row rows[SERVER_ROWS];
    size_t n = server_rows(f, talk_info(t), rows);

    if (sheet == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        sheet_line(sheet, rows[i].is_unknown ? ROLE_DIM : ROLE_TEXT, "%-12s%s", rows[i].label,
                   rows[i].text);
    sheet_line(sheet, ROLE_TEXT, "%-12s%zu", "messages", talk_ledger(t)->n);
    if (talk_tokens(t) > 0)
        sheet_line(sheet, ROLE_TEXT, "%-12s%u tokens", "context", talk_tokens(t));
    say_saved(t, sheet);
    talk_show(t, sheet);
}

static void show_process(struct talk *t)
{
    struct mw_sample *s = malloc(sizeof *s);
    struct sheet *sheet = sheet_new("Statistics", NULL);
    const struct mw_model_info *info = talk_info(t);
    char a[16], b[16], disks[DISKS_TEXT];
    bool is_buffered;

    if (s == NULL || sheet == NULL) {
        free(s);
        sheet_free(sheet);
        return;
    }
    talk_sample(t, s);
    is_buffered = strncmp(s->run.io, "buffered", 8) == 0;
    sheet_line(sheet, ROLE_HEADING, "%s", info->name);
    sheet_line(sheet, ROLE_TEXT, "%s, %s, %u layers, %s; a token uses %s", info->arch,
               info->type, info->n_layer, units_size(a, sizeof a, info->file_bytes),
               units_size(b, sizeof b, info->hot_bytes));
    sheet_line(sheet, ROLE_TEXT, "keys %s, values %s, %u thread%s, %s", s->run.kv_k,
               s->run.kv_v, s->run.threads, s->run.threads == 1 ? "" : "s", s->run.isa);
    sheet_line(sheet, ROLE_TEXT, "io %s (%s)", s->run.io, s->run.io_reason);
    sheet_gap(sheet);
    sheet_line(sheet, ROLE_TEXT, "messages         %10zu", talk_ledger(t)->n);
    sheet_line(sheet, ROLE_TEXT, "context          %10s of %s tokens",
               numbers_count(a, sizeof a, talk_tokens(t)),
               numbers_count(b, sizeof b, talk_plan(t)->n_ctx));
    sheet_line(sheet, ROLE_TEXT, "read %-11s %10s since the model was opened%s",
               is_buffered ? "" : "from disk", units_size(a, sizeof a, s->io.bytes_read),
               is_buffered                  ? ", through the page cache"
               : mw_run_is_mapped(&s->run) ? ", by the kernel's count of this process"
                                            : "");
    if (disks_text(s, disks, sizeof disks)[0] != '\0')
        sheet_line(sheet, ROLE_TEXT, "disks            %s", disks);
    if (s->kv.disk_plan > 0)
        sheet_line(sheet, ROLE_TEXT,
                   "keys and values  %10s on the disk, of %s when the context is full",
                   units_size(a, sizeof a, s->kv.disk_bytes),
                   units_size(b, sizeof b, s->kv.disk_plan));
    if (s->kv.disk_read > 0)
        sheet_line(sheet, ROLE_TEXT, "                 %10s of them read back, %s written",
                   units_size(a, sizeof a, s->kv.disk_read),
                   units_size(b, sizeof b, s->kv.disk_written));
    rate_rows(sheet, t, s);
    sheet_gap(sheet);
    value_row(sheet, "charged", &s->os.charged);
    value_row(sheet, "charged at most", &s->os.charged_peak);
    value_row(sheet, "resident", &s->os.rss);
    value_row(sheet, "model in cache", &s->os.model_cached);
    value_row(sheet, "available", &s->os.available);
    value_row(sheet, "swap", &s->os.swap_used);
    say_saved(t, sheet);
    free(s);
    talk_show(t, sheet);
}

void run_stats(struct talk *t, const char *args)
{
    struct mw_server_figures server;

    (void)args;
    if (talk_server(t, &server))
        show_server(t, &server);
    else
        show_process(t);
}
