# src: the program.  Includes only engine/memwall.h from the engine.
bin_PROGRAMS += memwall
memwall_SOURCES = \
	src/main.c src/start.h src/start.c \
	src/command.h src/commands.c src/help.c src/report.c \
	src/options.h src/options.c src/options_table.c \
	src/config_file.h src/config_file.c src/paths.h src/paths.c \
	src/settings.h src/settings.c \
	src/completions.c src/limits.h src/limits.c \
	src/json_out.h src/json_out.c \
	src/inspect_print.h src/inspect_print.c src/inspect_json.c src/cmd_inspect.c \
	src/plan_print.h src/plan_print.c src/cmd_plan.c \
	src/cmd_chat.c src/prompt.h src/prompt.c src/progress.h src/progress.c \
	src/answer_out.h src/answer_out.c src/summary.h src/summary.c src/cmd_run.c \
	src/eval_ids.h src/eval_ids.c src/eval_watch.h src/eval_watch.c \
	src/eval_text.h src/eval_text.c src/cmd_eval.c \
	src/once.h src/once.c src/cmd_replay.c \
	src/cmd_tokenize.c
memwall_LDADD = $(UI_LIBS) $(ENGINE_LIBS)
