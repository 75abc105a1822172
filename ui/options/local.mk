# ui/options: everything that can be set: the table, values, the configuration file.
# src includes it, too.
libui_a_SOURCES += \
	ui/options/appearance.h \
	ui/options/config_file.c ui/options/config_file.h \
	ui/options/kept.c ui/options/kept.h \
	ui/options/options.c ui/options/options.h ui/options/options_internal.h \
	ui/options/options_print.c ui/options/options_set.c \
	ui/options/proposal.c ui/options/proposal.h \
	ui/options/setting_check.c ui/options/setting_check.h \
	ui/options/subcommands.h \
	ui/options/table.c
