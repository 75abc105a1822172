# ui/text: text on the screen: cleaned, wrapped, as Markdown, selected, scrolled.
libui_a_SOURCES += \
	ui/text/block_line.c ui/text/block_line.h \
	ui/text/body.c ui/text/body.h \
	ui/text/codeblock.c ui/text/codeblock.h \
	ui/text/codecopy.c \
	ui/text/copy.c ui/text/copy.h \
	ui/text/draw.c \
	ui/text/emphasis.c ui/text/emphasis.h \
	ui/text/entity.c ui/text/entity.h \
	ui/text/find.c \
	ui/text/formula.c ui/text/formula.h \
	ui/text/highlight.c ui/text/highlight.h \
	ui/text/inline.c ui/text/inline.h \
	ui/text/markdown.c ui/text/markdown.h \
	ui/text/parser_input.c ui/text/parser_input.h \
	ui/text/rich.c ui/text/rich.h \
	ui/text/segment.c ui/text/segment.h \
	ui/text/select.c \
	ui/text/sheet.c ui/text/sheet.h ui/text/sheet_draw.c ui/text/sheet_internal.h \
	ui/text/table.c ui/text/table.h \
	ui/text/table_input.c ui/text/table_input.h \
	ui/text/transcript.c ui/text/transcript.h \
	ui/text/transcript_internal.h \
	ui/text/view.c \
	ui/text/wrap.c ui/text/wrap.h
