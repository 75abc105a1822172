/*
 * talk.h - a conversation with a model: what the screen and plain mode have in common.
 *
 *     commands ──> talk ──> struct engine (ui/engine)
 *                   │ └───> saving (the copy on disk)
 *                   └─────> talk_front (the screen or plain mode)
 *
 * It owns the engine with its model and chat, its saved copy, and the text that was not sent
 * yet.  It does not draw, read keys or look at the terminal.
 */
#ifndef MEMWALL_UI_TALK_TALK_H
#define MEMWALL_UI_TALK_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/engine/engine.h"
#include "ui/options/options.h"
#include "ui/talk/changes.h"
#include "ui/talk/front.h"
#include "ui/talk/ledger.h"
#include "ui/talk/outbox.h"
#include "ui/talk/saving.h"
#include "ui/ui.h"

struct talk;

/*
 *     LOADING ──ready──> READY ──send──> ANSWERING ──> PREFILL ──first text──> ANSWERING
 *        │                 ^                 │            │                        │
 *      error               │                 └─stop──> STOPPING <──stop────────────┤
 *        v                 │                              │                        │
 *      FAILED ──/memory────┤<──────────done───────────────┴──────────done──────────┘
 *
 * /model goes from READY or FAILED to SWITCHING, and from there to LOADING.
 */
enum talk_state {
    TALK_LOADING,
    TALK_SWITCHING, /* another model is opened; there may be no engine */
    TALK_FAILED,    /* the model could not be loaded with these options */
    TALK_READY,
    TALK_PREFILL,   /* the engine evaluates the prompt */
    TALK_ANSWERING, /* text arrives, or the engine has not started on the message yet */
    TALK_STOPPING,  /* the answer was cancelled and ends within a block */
};

/* Open the model and begin or continue a chat.  o must outlive t.  *out is set before the
 * front is called.  -1 with *e: *out is NULL. */
int talk_open(struct talk **out, const struct ui_chat_options *o,
              const struct talk_front *front, struct err *e);
void talk_close(struct talk *t);
/* Show notices about the budget, once the front can show them. */
void talk_greet(struct talk *t);

/* ---- events and time ---- */

/* A descriptor that is readable when talk_pump has work; -1: there is none. */
int talk_fd(const struct talk *t);
void talk_pump(struct talk *t);
/* Do what is due; talk_wait: nanoseconds until then, UINT64_MAX for never. */
void talk_tick(struct talk *t);
uint64_t talk_wait(const struct talk *t);

/* The command of the shell that runs, or NULL; its descriptor, or -1; and what to do when it is
 * readable.  The second time, talk_shell_stop kills it. */
const char *talk_shell(const struct talk *t);
int talk_shell_fd(const struct talk *t);
void talk_shell_pump(struct talk *t);
void talk_shell_stop(struct talk *t);

/* ---- what is known ---- */

enum talk_state talk_state(const struct talk *t);
bool talk_is_answering(const struct talk *t); /* PREFILL, ANSWERING or STOPPING */
bool talk_is_loaded(const struct talk *t);    /* READY or answering */
bool talk_has_text(const struct talk *t);     /* the answer, so far; or the last one had */
#define TALK_CONTINUE_HINT "/continue resumes the answer"
/* Can this engine go on with an answer? */
bool talk_can_resume(const struct talk *t);
/* The chat ends with an answer that was stopped or met its limit, and nothing is being done. */
bool talk_can_continue(const struct talk *t);

const struct ui_chat_options *talk_settings(const struct talk *t); /* as for talk_open */
const struct mw_chat_options *talk_options(const struct talk *t);  /* requested */
/* Those of the engine without a drafter that lost, which it has closed. */
struct mw_options talk_in_force(const struct talk *t);
/* The model, if it is in this process, or NULL. */
const struct mw_model *talk_model(const struct talk *t);
/* Copy what the server reports about itself.  Returns false if the model is in this process. */
bool talk_server(const struct talk *t, struct mw_server_figures *out);
bool talk_has_server(const struct talk *t);
/* The name of model i of the server, not safe to print; NULL after the last, and without a
 * server. */
const char *talk_server_model(const struct talk *t, size_t i);
/* The number of the engine that answers: each one that is opened has another.  0: none. */
uint32_t talk_engine(const struct talk *t);
const struct mw_model_info *talk_info(const struct talk *t);
const char *talk_model_path(const struct talk *t);
const char *talk_model_lasting(const struct talk *t); /* its name that lasts, or its path */
/* Returns the path of the model that is being opened in place of this one, or NULL. */
const char *talk_opening_path(const struct talk *t);
const struct plan *talk_plan(const struct talk *t);
/* False: the engine does not report its plan, and talk_plan() has only the context. */
bool talk_has_plan(const struct talk *t);
#define TALK_NO_PLAN "this engine does not report the plan of its memory"
const struct mw_receipt *talk_last(const struct talk *t); /* the last answer's; or NULL */
/* Tokens per second of the last answer; 0 if the plan has changed since. */
double talk_measured(const struct talk *t);
/* The prediction for the last answer when it began; 0: not known, or its settings changed. */
double talk_promised_tps(const struct talk *t);
const struct ledger *talk_ledger(const struct talk *t);
const struct outbox *talk_outbox(const struct talk *t);
struct saving *talk_saving(struct talk *t);
uint32_t talk_tokens(const struct talk *t); /* mw_chat_tokens */
/* mw_model_limits(), mw_model_anchor(), mw_model_tried(); zeros if they are not known. */
void talk_limits(const struct talk *t, struct mw_limits *out);
void talk_anchor(const struct talk *t, struct plan_anchor *out);
size_t talk_tried(const struct talk *t, struct mw_tried *list);

/* How far the prompt is.  Returns false unless the state is PREFILL and its size is known. */
struct talk_progress {
    uint64_t done, total; /* tokens */
    uint64_t ns;          /* since it began */
};
bool talk_progress(const struct talk *t, struct talk_progress *out);

/* A sample with the kernel's figures. */
void talk_sample(struct talk *t, struct mw_sample *out);

/* The plan that options would have; as mw_plan and mw_plan_fit.  -1 with ERR_UNSUPPORTED: the
 * engine does not report it. */
int talk_try_plan(struct talk *t, const struct mw_options *o, struct plan *out, struct err *e);
/* Predict the memory and the speed of a run with options, as mw_plan_outlook. */
bool talk_try_outlook(struct talk *t, const struct mw_options *o, const struct plan_run *run,
                      struct plan_outlook *out);
/* Predict the speed of the current plan from the limits of the machine as they are known now:
 * forward passes correct them. */
void talk_predict_again(struct talk *t);
/* Diagnose answers with other options at this point of the conversation, starting from what was
 * measured with the options in use.  False: nothing is known. */
bool talk_diagnose(struct talk *t, const struct mw_options *o, struct mw_diagnosis *out);
/* The same with the options in use. */
bool talk_diagnose_now(struct talk *t, struct mw_diagnosis *out);
/* Make the wall (mw_wall_begin(), mw_wall_step()) of these options and sample.  False: not
 * known, too. */
bool talk_wall_begin(struct talk *t, struct mw_wall *w, const struct mw_options *o,
                     const struct mw_sample *s);
bool talk_wall_step(struct talk *t, struct mw_wall *w, const struct mw_options *o,
                    const struct mw_sample *s, uint32_t n);
bool talk_try_fit(struct talk *t, const struct mw_options *o, uint64_t *smallest_budget,
                  uint32_t *largest_ctx);
/* Estimate the cost of sending text with the attached files.  false: not known. */
bool talk_cost(struct talk *t, const char *text, struct mw_cost *out);
/* Count the tokens of text[0 .. n), in bounded time.  false: not known. */
bool talk_count(struct talk *t, const char *text, size_t n, uint32_t *out);
/* The tokens of the file that was attached last; 0: not known. */
uint32_t talk_file_tokens(struct talk *t);
/* Estimate the cost of evaluating all of the conversation again under another plan. */
void talk_cost_again(const struct talk *t, const struct plan *plan, struct mw_cost *out);

/* The cost of resuming a saved chat with its KV file.  False: it has none. */
struct talk_kv_cost {
    uint32_t n_token;
    uint64_t bytes;   /* on the disk */
    bool is_of_model; /* that answers now */
    double load_s;    /* to read it, predicted; 0: not known */
};
bool talk_kv_cost(const struct talk *t, const char *chat_path, struct talk_kv_cost *out);
/* Predict the seconds to evaluate so many tokens; 0: not known. */
double talk_evaluation_s(const struct talk *t, uint64_t n_token);

/* ---- messages to the person; cleaned here ---- */

void talk_notice(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void talk_error(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void talk_report(struct talk *t, const struct err *e);

/* ---- what the front shows or does ---- */

void talk_show(struct talk *t, struct sheet *s);
int talk_act(struct talk *t, enum talk_action action, const char *arg, struct err *e);
int talk_set_look(struct talk *t, enum option_id what, const struct ui_options *look,
                  struct err *e);
void talk_draft(struct talk *t, const char *text);
bool talk_has_screen(const struct talk *t);
bool talk_is_person(const struct talk *t);
void talk_quit(struct talk *t);

/* ---- messages ---- */

/* Send text with the attached files, or queue it while the engine is busy.  Text that cannot
 * be sent goes back into the input line. */
void talk_send(struct talk *t, const char *text);
/* Send the first message of the queue if the engine is free. */
void talk_send_waiting(struct talk *t);
/* Cancel the answer; its text stays, and the queue goes back into the input line. */
void talk_stop(struct talk *t);

/* Bytes of text that can still be attached or queued, and in all: it must fit the context. */
size_t talk_text_room(const struct talk *t);
size_t talk_text_max(const struct talk *t);
/* Attach text to the next message and take it over.  false: there are too many files. */
bool talk_attach(struct talk *t, const char *name, char *text, size_t n);
/* Attach only the first n of the files that are attached. */
void talk_keep_files(struct talk *t, size_t n);

/* Keep the first n messages, here, in the engine and on disk. */
void talk_rewind(struct talk *t, size_t n);
/* The same; the first message that is removed goes into the input line. */
void talk_take_back(struct talk *t, size_t n);
void talk_retry(struct talk *t);    /* make the last answer again */
/* The number of answers to the last question, and of the one that is shown, from 1. */
uint32_t talk_answers(const struct talk *t, uint32_t *shown);
/* Show the next one (1) or the one before (-1).  Returns false if there is no other. */
bool talk_flip(struct talk *t, int step);
void talk_continue(struct talk *t); /* continue a stopped answer */
void talk_clear(struct talk *t);    /* begin a new chat */
/* Let the model summarise the messages before the last n_keep exchanges, or fewer if the context
 * is too full, and see the summary in their place.  then_continue: then go on with the answer
 * that was cut.  If that is stopped or fails, nothing changes. */
void talk_compact(struct talk *t, uint64_t n_keep, bool then_continue);
/* Returns the tokens that the answer being made, or the next one, may have; 0: no limit. */
uint32_t talk_answer_limit(const struct talk *t);
bool talk_can_compact(const struct talk *t); /* with one exchange that stays */
/* "at most 512 tokens, ~40 s": the summary that talk_can_compact() allows.  Returns buf. */
char *talk_compact_price(struct talk *t, char *buf, size_t n);
bool talk_is_compacting(const struct talk *t); /* the answer that is made is a summary */
/* Take the last summary back, if there was no message since. */
void talk_undo_summary(struct talk *t);
bool talk_can_undo_summary(const struct talk *t);
/* Open a saved chat.  -1 with *e: the current one is unchanged. */
int talk_open_saved(struct talk *t, const char *name, struct err *e);
/* As much of message n as fits the context, from disk; to be freed, or NULL. */
char *talk_saved_text(const struct talk *t, size_t n);
/* Message n from wherever the front finds it; to be freed, or NULL. */
char *talk_text_of(struct talk *t, size_t n);
/* The beginning of the oldest message that the model sees, in one line; "": it is not known.
 * Returns buf. */
char *talk_oldest_text(struct talk *t, char *buf, size_t n);

/* ---- options and model ---- */

/* The values of this chat: those requested, and those of the screen. */
void talk_values(const struct talk *t, struct options *out);
/* Request the value of one option, which replaces the model's recommendation from now on. */
void talk_choose(struct talk *t, enum option_id id, const struct options *o, const char *what);
/* Request other options; see changes.h. */
void talk_change(struct talk *t, const struct mw_chat_options *o, unsigned then,
                 const char *what);
/* Forget the settings of this chat and of this model: the next start takes the defaults.  -1
 * with *e. */
int talk_forget_settings(struct talk *t, struct err *e);
/* Whether such a change would wait for the end of the answer that is being made. */
bool talk_would_wait(const struct talk *t, const struct mw_chat_options *o);
/* Name the changes that are not in force yet; as changes_text(). */
char *talk_pending(const struct talk *t, char *buf, size_t n);
/* Start to switch to another model, which keeps the conversation.  The state must be READY or
 * FAILED.  name: as the person wrote it.  If the model cannot be opened, the old one is used
 * again.  -1 with *e: nothing has
 * changed. */
int talk_open_model(struct talk *t, const char *path, const char *name, struct err *e);

/* ---- recording ---- */

/* Record the engine's counters to a file. */
int talk_record(struct talk *t, const struct mw_output *file, struct err *e);
/* The file that is recorded to, or NULL. */
const char *talk_recording(const struct talk *t);
/* End the recording.  -1 with *e: the file is not complete. */
int talk_record_end(struct talk *t, struct err *e);

#endif
