# unit tests of ui
if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_layout \
	tests/unit/test_history \
	tests/unit/test_keys \
	tests/unit/test_prompt_cost \
	tests/unit/test_talk

tests_unit_test_layout_SOURCES = tests/unit/test_layout.c
tests_unit_test_layout_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_layout_LDADD = $(CHAT_LIBS)

tests_unit_test_history_SOURCES = tests/unit/test_history.c
tests_unit_test_history_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_history_LDADD = $(CHAT_LIBS)

tests_unit_test_keys_SOURCES = tests/unit/test_keys.c
tests_unit_test_keys_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_keys_LDADD = $(CHAT_LIBS)

tests_unit_test_talk_SOURCES = tests/unit/test_talk.c \
	tests/lib/fake_chat.c tests/lib/fake_chat.h
tests_unit_test_talk_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_talk_LDADD = $(CHAT_LIBS)

tests_unit_test_prompt_cost_SOURCES = tests/unit/test_prompt_cost.c
tests_unit_test_prompt_cost_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_prompt_cost_LDADD = $(UNIT_LIBS)
endif
