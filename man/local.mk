# man: the program and its files.  src/local.mk lists the pages of the subcommands.
dist_man_MANS += man/memwall.1 man/memwall.conf.5 man/memwall-telemetry.5
