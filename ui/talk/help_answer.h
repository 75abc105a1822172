/*
 * help_answer.h - answers to questions about memwall's own words, from its help texts.
 *
 *     question ── words ── entries of the help ── the best one, if it explains the question
 *
 * The guide is a small model.  It knows its subject, but it mixes up the words of the screen. A
 * question with such a word, a key, an option or a command is answered with the text that the
 * help has for it.  All other questions are for the model.
 */
#ifndef MEMWALL_UI_TALK_HELP_ANSWER_H
#define MEMWALL_UI_TALK_HELP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

struct mw_model_info;
struct ui_subcommand;

#define HELP_ANSWER_BYTES 4096
#define HELP_ANSWER_SAYS  "From the help: " /* how each answer begins */

/* Is it the guide, the model that is installed with memwall?  A name alone does not say so. */
bool help_is_guide(const struct mw_model_info *info);

/* Answer the last of n questions of a conversation, oldest first: it may be about the subject
 * of the one before.  Returns false if it is for the model. */
bool help_answer(const struct ui_subcommand *subcommands, const char *const question[],
                 size_t n, char buf[HELP_ANSWER_BYTES]);

#endif
