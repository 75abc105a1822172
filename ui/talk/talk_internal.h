/*
 * talk_internal.h - the conversation itself, shared by the files of this module.
 *
 *     talk.c           opening and closing, what is known
 *     talk_events.c    what the engine reports
 *     talk_messages.c  sending, stopping, going back
 *     talk_help.c      answers from the help texts, in place of the guide
 *     talk_answers.c   several answers to the last question
 *     talk_compact.c   a summary in place of the oldest messages
 *     talk_model.c     the model: opening it, switching to another
 *     command_shell.c  a command of the shell that runs
 *     talk_saved.c     a saved chat becomes the conversation
 *     talk_kept.c      settings that come back with the chat and with the model
 *     talk_kv.c        the keys and values of a saved chat
 */
#ifndef MEMWALL_UI_TALK_TALK_INTERNAL_H
#define MEMWALL_UI_TALK_TALK_INTERNAL_H

#include "ui/talk/carried.h"
#include "ui/talk/opening.h"
#include "ui/talk/shell.h"
#include "ui/talk/talk.h"

/* Answers that end in these ways are resumed by /continue without a question. */
static inline bool answer_can_go_on(enum mw_done done)
{
    return done == MW_DONE_CANCELLED || done == MW_DONE_LENGTH;
}

/* Text at the end of the answer that goes on: it was held back until the answer was cut. */
struct held {
    char text[512];
    size_t n;
    bool is_thinking;
};

/* The answer that is being made. */
struct answer {
    bool resumes;  /* it continues the last one */
    bool is_again; /* there is another answer to the question */
    bool has_text; /* at least a piece */
    uint64_t prefill_done, prefill_total, started_ns;
    uint64_t prompt_total; /* with the tokens that are held */
    bool has_new_plan;     /* since it began */
    double promised_tps;   /* predicted when it began; 0: not known */
};

/*
 * Switching to another model, on a thread (opening.h):
 *
 *     PROBE ──can be read, or does not fit beside the old one──> NEW ──fails──> BACK
 *
 * PROBE reads the header within the memory that the old engine leaves, so a path without a
 * model changes nothing.  NEW and BACK close the engine that there is and open the new model,
 * or the old one again.
 */
enum switch_step { SWITCH_PROBE, SWITCH_NEW, SWITCH_BACK };

struct switching {
    enum switch_step step;
    struct opening *opening; /* NULL: nothing is opened */
    char *path;              /* of the new model */
    char *lasting;           /* the same for the saved chat */
    enum talk_state before;  /* the state that a failed probe returns to */
};

/* The model makes a summary. */
struct compact {
    bool is_on, then_continue, has_failed;
    size_t n_old;        /* messages before it, with those that the model no longer sees */
    size_t n_dropped;    /* that the model no longer sees, when it began */
    size_t n_replaced;   /* messages that the model sees until now */
    bool has_earlier;    /* and the summary before them */
    uint32_t n_token;    /* that the model sees before, about */
    struct carried tail; /* the messages after them */
    char *text;          /* of the summary so far */
    size_t len;
};

/* The KV file of the chat. */
struct kv_state {
    bool said_failed; /* that it cannot be written */
    bool is_alone;    /* no weights were read when the last one began to be */
    double bytes_s;   /* at which such a one was read; 0: none was */
};

struct talk {
    const struct ui_chat_options *o;
    struct talk_front front;
    enum talk_state state;

    char *model_path;
    char *model_lasting; /* the same for the saved chat */
    struct engine *engine; /* NULL while another model is opened */
    uint32_t n_engine;     /* that were opened so far */
    uint32_t n_asked;      /* settings of the server whose replies have not come */
    struct switching switching;
    struct mw_model_info info;
    struct plan plan;
    size_t text_max; /* talk_text_max */
    struct mw_recorder *recorder;
    char recorder_path[256];

    struct changes changes;
    bool given[N_OPTION]; /* options that the person chose */
    struct outbox outbox;
    struct shell shell;
    struct ledger ledger;
    struct saving saving;
    struct answer answer;
    struct compact compact;
    struct kv_state kv;
    struct held held;
    size_t n_unfinished; /* messages when the last answer was stopped, or met its limit; or 0 */
    struct mw_receipt last; /* of the last answer */
    bool has_last;
    struct mw_receipt said; /* of the same answer, when a notice said why it has no text */
    double promised_tps;    /* for the last answer; 0: not known, or its settings changed */
    double measured_tps;    /* of the last answer under this plan; 0: not known */
    bool said_help;         /* the person knows how to ask the model in place of the help */
};

/* ---- talk_model.c ---- */

/* Open the model that o names and start the engine. */
int model_open_first(struct talk *t, struct err *e);
void model_close(struct talk *t);
/* The engine has this plan now. */
void model_set_plan(struct talk *t, const struct plan *plan);
/* The thread that opens a model has ended. */
void model_opened(struct talk *t);

/* ---- talk_messages.c ---- */

/* The engine begins to make an answer. */
void messages_begin_answer(struct talk *t, bool resumes);
/* The cost of sending text, with the attached files or without them.  False: not known. */
bool messages_cost(struct talk *t, const char *text, bool with_files, struct mw_cost *out);
/* Queue a message, or send it if the engine is free, whether it fits the context or not. */
void messages_send_later(struct talk *t, const char *text);
/* Keep the first n bytes of attached file i.  Returns false without memory. */
bool messages_cut_file(struct talk *t, size_t i, size_t n);
/* The queue goes back into the input line, in order. */
void messages_return_waiting(struct talk *t);

/* Enter a message that was sent into the conversation; from_queue: it waited in the queue. */
void messages_add(struct talk *t, const struct outbox_message *m, bool from_queue);

/* ---- talk_help.c ---- */

/* Answer a message from the help texts, if the model is the guide and they have the answer.
 * Returns false if it is for the model. */
bool help_reply(struct talk *t, const struct outbox_message *m, bool from_queue);
/* Would it answer this text, without files? */
bool help_knows(struct talk *t, const char *text);
/* Is the last message such an answer?  Then the model answers in its place. */
bool help_was_last(const struct talk *t);
void help_ask_model(struct talk *t);

/* ---- talk_saved.c ---- */

/* Open the chat that o names, if it names one, and take its system message.  No engine runs yet. */
int saved_open(struct talk *t, struct err *e);
/* Give it to the engine, or begin a new chat. */
int saved_begin(struct talk *t, struct err *e);
/* If the chat ends with an answer, note the text at its end that was held back. */
void saved_held(struct talk *t);
/* Give the engine the newest messages that fit the context. */
int saved_restore(struct talk *t, struct err *e);

/* ---- talk_kv.c ---- */

/* An answer is over: let the engine save the keys and values of the chat when it has time. */
void kv_save(struct talk *t);
void kv_saved(struct talk *t, const struct mw_event *ev);
/* The engine has the messages of the chat: let it load their keys and values. */
void kv_load(struct talk *t);
/* The same after another model was opened, if the KV file is of that one. */
void kv_load_if_own(struct talk *t);
void kv_loaded(struct talk *t, const struct mw_event *ev);
/* Let the engine keep and use beginnings that chats share, if chats are saved. */
void kv_share(struct talk *t);
void kv_shared(struct talk *t, const struct mw_event *ev);

/* ---- talk_answers.c ---- */

/* The last answer is made again: remove it from the saved chat, and keep it there as another
 * answer.  Returns false if it could not be read. */
bool answers_keep(struct talk *t);
/* It was not made: show the answer before it again.  Returns false if there is none. */
bool answers_bring_back(struct talk *t);
/* It was made: say how many there are. */
void answers_say(struct talk *t);

/* ---- talk_compact.c: what the engine reports while it makes a summary ---- */

void compact_text(struct talk *t, const struct mw_event *ev);
void compact_thought(struct talk *t);
void compact_done(struct talk *t, const struct mw_event *ev);
void compact_failed(struct talk *t); /* there will be no end */

/* ---- talk_kept.c ---- */

/* The model is loaded: keep the options of the command line for it. */
void kept_begin(struct talk *t);
/* Options are in force in place of those of before.  is_of_chat: they came from the chat. */
void kept_changed(struct talk *t, const struct mw_options *was, bool is_of_chat);
/* Save the options in force with the chat. */
void kept_save(struct talk *t);
/* Note in the chat the model that answers. */
void kept_model(struct talk *t);
/* The same for the system message. */
void kept_system(struct talk *t);
/* Does a saved chat with this system message (NULL: none) replace the one of these options? */
bool kept_takes_system(const struct talk *t, const struct mw_chat_options *o, const char *system);
/* A saved chat was opened: use its settings, and its system message (NULL: none). */
void kept_of_chat(struct talk *t, const char *system);
/* Say with which settings another model is loaded (/model). */
void kept_say_switched(struct talk *t);

#endif
