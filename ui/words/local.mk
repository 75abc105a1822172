# ui/words: text that needs no terminal: cleaned, quoted, measured; paths; receipts in words.
# src includes it, too.
libui_a_SOURCES += \
	ui/words/budget.c ui/words/budget.h \
	ui/words/clean.c ui/words/clean.h \
	ui/words/cluster.c ui/words/cluster.h \
	ui/words/disks.c ui/words/disks.h \
	ui/words/markup.c ui/words/markup.h \
	ui/words/path.c ui/words/path.h \
	ui/words/quote.c ui/words/quote.h \
	ui/words/receipt.c ui/words/receipt.h \
	ui/words/server.c ui/words/server.h \
	ui/words/tried.c ui/words/tried.h
