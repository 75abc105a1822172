# man: memwall.1, one page a subcommand, formats of files
dist_man_MANS += man/memwall.1 \
	man/memwall-chat.1 man/memwall-run.1 man/memwall-plan.1 man/memwall-eval.1 \
	man/memwall-inspect.1 man/memwall-replay.1 man/memwall-tokenize.1 \
	man/memwall.conf.5 man/memwall-telemetry.5
