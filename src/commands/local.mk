# src/commands: each subcommand is a source and a man page.
memwall_SOURCES += src/commands/bench.c src/commands/chat.c src/commands/completions.c \
	src/commands/demo.c src/commands/doctor.c src/commands/eval.c \
	src/commands/inspect.c src/commands/list.c src/commands/plan.c \
	src/commands/pull.c src/commands/replay.c src/commands/report.c \
	src/commands/run.c src/commands/run_server.c src/commands/run_server.h \
	src/commands/serve.c src/commands/sweep.c src/commands/tokenize.c \
	src/commands/tried.c
dist_man_MANS += \
	man/memwall-chat.1 man/memwall-demo.1 man/memwall-run.1 man/memwall-list.1 \
	man/memwall-pull.1 man/memwall-plan.1 man/memwall-doctor.1 \
	man/memwall-bench.1 man/memwall-sweep.1 man/memwall-report.1 \
	man/memwall-tried.1 man/memwall-serve.1 \
	man/memwall-eval.1 man/memwall-replay.1 man/memwall-inspect.1 man/memwall-tokenize.1
