# src: the program.  It includes only memwall.h and base of the engine.
bin_PROGRAMS += memwall
memwall_CPPFLAGS = $(AM_CPPFLAGS) -DPKGDATADIR='"$(pkgdatadir)"'
memwall_SOURCES = \
	src/main.c src/start.h src/start.c \
	src/command.h src/commands.c src/help.c src/report.c \
	src/command_line.h src/command_line.c \
	src/paths.h src/paths.c src/known.h src/known.c \
	src/settings.h src/settings.c \
	src/limits.h src/limits.c \
	src/limits_print.h src/limits_print.c src/doctor_print.h src/doctor_print.c \
	src/doctor_walls.h src/doctor_walls.c src/doctor_summary.h src/doctor_summary.c \
	src/doctor_advice.h src/doctor_advice.c src/models.h src/models.c src/other_words.h src/other_words.c \
	src/beside.h src/beside.c src/stores.h src/stores.c \
	src/inspect_print.h src/inspect_print.c src/products_print.h src/products_print.c \
	src/inspect_json.c \
	src/exponents_print.h src/exponents_print.c \
	src/limit_words.h src/limit_words.c src/plan_print.h src/plan_print.c \
	src/plan_table.h src/plan_table.c \
	src/variables.c src/variables.h \
	src/what_if.h src/what_if.c \
	src/plan_explain.h src/plan_explain.c \
	src/prompt.h src/prompt.c src/progress.h src/progress.c \
	src/answer_out.h src/answer_out.c src/summary.h src/summary.c \
	src/id_list.h src/id_list.c src/eval_watch.h src/eval_watch.c \
	src/eval_text.h src/eval_text.c \
	src/figures.h src/figures.c src/measure.h src/measure.c \
	src/point.h src/point.c src/statistics.h src/statistics.c \
	src/results.h src/results.c src/measure_child.h src/measure_child.c \
	src/results_print.h src/results_print.c src/text_table.h src/text_table.c \
	src/measure_all.h src/measure_all.c src/sweep_chart.h src/sweep_chart.c \
	src/result_files.h src/result_files.c src/mapped.h src/mapped.c \
	src/sides.h src/sides.c src/sides_text.c \
	src/once.h src/once.c \
	src/page.h src/page.c src/page_facts.h src/page_facts.c src/page_html.h src/page_html.c \
	src/page_plan.h src/page_plan.c src/page_record.h src/page_record.c \
	src/page_results.h src/page_results.c src/page_stop.h src/page_stop.c \
	src/page_track.h src/page_track.c src/page_words.c \
	src/signals.h src/signals.c src/hub.h src/hub.c src/pull_print.h src/pull_print.c

# Each subcommand is a source and a man page.
memwall_SOURCES += \
	src/cmd_chat.c src/cmd_demo.c src/cmd_run.c src/cmd_list.c src/cmd_pull.c \
	src/cmd_plan.c src/cmd_doctor.c src/cmd_bench.c src/cmd_sweep.c src/cmd_report.c \
	src/cmd_tried.c \
	src/cmd_eval.c src/cmd_replay.c src/cmd_inspect.c src/cmd_tokenize.c src/cmd_completions.c
dist_man_MANS += \
	man/memwall-chat.1 man/memwall-demo.1 man/memwall-run.1 man/memwall-list.1 \
	man/memwall-pull.1 man/memwall-plan.1 man/memwall-doctor.1 \
	man/memwall-bench.1 man/memwall-sweep.1 man/memwall-report.1 \
	man/memwall-tried.1 \
	man/memwall-eval.1 man/memwall-replay.1 man/memwall-inspect.1 man/memwall-tokenize.1
memwall_LDADD = $(UI_LIBS) $(ENGINE_LIBS)
