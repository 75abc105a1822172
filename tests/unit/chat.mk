# unit tests of ui/text and ui/store
EXTRA_DIST += tests/data/chat

if HAVE_CMOCKA
CHAT_LIBS = $(UI_LIBS) $(ENGINE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_clean tests/unit/test_wrap tests/unit/test_receipt \
	tests/unit/test_copy tests/unit/test_store tests/unit/test_store_rescue \
	tests/unit/test_store_parts \
	tests/unit/test_markdown \
	tests/unit/test_transcript tests/unit/test_transcript_turns
tests_unit_test_clean_SOURCES = tests/unit/test_clean.c tests/unit/chat_random.h
tests_unit_test_clean_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_clean_LDADD = $(CHAT_LIBS)

tests_unit_test_wrap_SOURCES = tests/unit/test_wrap.c tests/unit/chat_random.h
tests_unit_test_wrap_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_wrap_LDADD = $(CHAT_LIBS)

tests_unit_test_receipt_SOURCES = tests/unit/test_receipt.c
tests_unit_test_receipt_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_receipt_LDADD = $(CHAT_LIBS)

tests_unit_test_copy_SOURCES = tests/unit/test_copy.c
tests_unit_test_copy_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_copy_LDADD = $(CHAT_LIBS)

tests_unit_test_store_SOURCES = tests/unit/test_store.c
tests_unit_test_store_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_store_LDADD = $(CHAT_LIBS)

tests_unit_test_store_parts_SOURCES = tests/unit/test_store_parts.c
tests_unit_test_store_parts_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_store_parts_LDADD = $(CHAT_LIBS)

tests_unit_test_store_rescue_SOURCES = tests/unit/test_store_rescue.c
tests_unit_test_store_rescue_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_store_rescue_LDADD = $(CHAT_LIBS)

tests_unit_test_markdown_SOURCES = tests/unit/test_markdown.c tests/unit/chat_random.h
tests_unit_test_markdown_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_markdown_LDADD = $(CHAT_LIBS)

tests_unit_test_transcript_SOURCES = tests/unit/test_transcript.c tests/unit/chat_random.h \
	tests/unit/transcript_pane.c tests/unit/transcript_pane.h
tests_unit_test_transcript_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_transcript_LDADD = $(CHAT_LIBS)

tests_unit_test_transcript_turns_SOURCES = tests/unit/test_transcript_turns.c \
	tests/unit/transcript_pane.c tests/unit/transcript_pane.h
tests_unit_test_transcript_turns_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_transcript_turns_LDADD = $(CHAT_LIBS)
endif
