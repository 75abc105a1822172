/*
 * command_list.h - the functions of the commands, for the table in commands.c.
 */
#ifndef MEMWALL_UI_TALK_COMMAND_LIST_H
#define MEMWALL_UI_TALK_COMMAND_LIST_H

#include "ui/talk/talk.h"

/* Returns true, and says so, if the conversation cannot be changed now (command_talk.c). */
bool command_is_busy(struct talk *t);

/* command_chats.c: saved chats */
void run_chats(struct talk *t, const char *args);
void run_delete(struct talk *t, const char *args);
void run_open(struct talk *t, const char *args);
void run_rename(struct talk *t, const char *args);

/* command_talk.c: the conversation */
void run_answer(struct talk *t, const char *args);
void run_clear(struct talk *t, const char *args);
void run_compact(struct talk *t, const char *args);
void run_continue(struct talk *t, const char *args);
void run_copy(struct talk *t, const char *args);
void run_export(struct talk *t, const char *args, bool replaces);
void run_find(struct talk *t, const char *args);
void run_forget(struct talk *t, const char *args);
void run_model(struct talk *t, const char *args);
void run_quit(struct talk *t, const char *args);
void run_record(struct talk *t, const char *args, bool replaces);
void run_retry(struct talk *t, const char *args);
void run_rewind(struct talk *t, const char *args);
void run_save(struct talk *t, const char *args, bool replaces);
void run_undo(struct talk *t, const char *args);

/* command_settings.c */
void run_mouse(struct talk *t, const char *args);
void run_set(struct talk *t, const char *args);

/* files.c */
void run_file(struct talk *t, const char *args);

/* command_shell.c */
void run_shell(struct talk *t, const char *args);

/* help.c */
void run_help(struct talk *t, const char *args);

/* command_show.c: what is known */
void run_plan(struct talk *t, const char *args);
void run_stats(struct talk *t, const char *args);
void run_tried(struct talk *t, const char *args);
void run_why(struct talk *t, const char *args);

#endif
