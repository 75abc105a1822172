# Texts of the chat pane and saved chats.
FUZZ_UI_LIBS = $(UI_LIBS) $(ENGINE_LIBS)

fuzz_programs += tests/fuzz/fuzz_clean
tests_fuzz_fuzz_clean_SOURCES = tests/fuzz/fuzz_clean.c $(FUZZ_MAIN)
tests_fuzz_fuzz_clean_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_clean_LDADD = $(FUZZ_UI_LIBS)
EXTRA_DIST += tests/fuzz/corpus/clean

fuzz_programs += tests/fuzz/fuzz_markdown
tests_fuzz_fuzz_markdown_SOURCES = tests/fuzz/fuzz_markdown.c $(FUZZ_MAIN)
tests_fuzz_fuzz_markdown_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_markdown_LDADD = $(FUZZ_UI_LIBS)
EXTRA_DIST += tests/fuzz/corpus/markdown

fuzz_programs += tests/fuzz/fuzz_chatlog
tests_fuzz_fuzz_chatlog_SOURCES = tests/fuzz/fuzz_chatlog.c tests/fuzz/fuzz_file.h $(FUZZ_MAIN)
tests_fuzz_fuzz_chatlog_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_fuzz_chatlog_LDADD = $(FUZZ_UI_LIBS)
EXTRA_DIST += tests/fuzz/corpus/chatlog
