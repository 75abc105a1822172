# engine/grammar: texts that follow a grammar or a JSON schema.
libengine_a_SOURCES += \
	engine/grammar/gbnf.c engine/grammar/gbnf.h engine/grammar/gbnf_internal.h \
	engine/grammar/gbnf_set.c \
	engine/grammar/grammar.c engine/grammar/grammar.h \
	engine/grammar/machine.c engine/grammar/machine.h \
	engine/grammar/program.c engine/grammar/program.h \
	engine/grammar/schema.c engine/grammar/schema_choice.c \
	engine/grammar/schema_internal.h engine/grammar/schema_made.c \
	engine/grammar/schema_merge.c engine/grammar/schema_multiples.c \
	engine/grammar/schema_negate.c engine/grammar/schema_not.c engine/grammar/schema_numbers.c \
	engine/grammar/schema_parts.c engine/grammar/schema_pattern.c engine/grammar/schema_refs.c \
	engine/grammar/schema_texts.c \
	engine/grammar/schema_unique.c engine/grammar/schema_values.c \
	engine/grammar/token_tree.c engine/grammar/token_tree.h
