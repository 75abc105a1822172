# engine/text: tokenizers and chat formats.
libengine_a_SOURCES += \
	engine/text/added.c engine/text/added.h \
	engine/text/answer_again.c \
	engine/text/answer_parser.c \
	engine/text/bpe.c engine/text/bpe.h \
	engine/text/chat_choose.c \
	engine/text/chat_format.c engine/text/chat_format.h \
	engine/text/chat_internal.h \
	engine/text/chat_json.c \
	engine/text/chat_marks.c \
	engine/text/chat_openings.c \
	engine/text/chat_template.c \
	engine/text/chat_trial.c engine/text/chat_trial.h \
	engine/text/chat_writer.c \
	engine/text/decode.c \
	engine/text/encode.c engine/text/encode_internal.h engine/text/encode_pieces.c \
	engine/text/ids.c \
	engine/text/jinja.h engine/text/jinja_internal.h \
	engine/text/jinja_attr.c \
	engine/text/jinja_call.c \
	engine/text/jinja_case.c \
	engine/text/jinja_eval.c \
	engine/text/jinja_exec.c \
	engine/text/jinja_expr.c \
	engine/text/jinja_filters.c \
	engine/text/jinja_filters_seq.c \
	engine/text/jinja_lex.c \
	engine/text/jinja_methods.c \
	engine/text/jinja_ops.c \
	engine/text/jinja_parse.c \
	engine/text/jinja_print.c \
	engine/text/jinja_str.c \
	engine/text/jinja_tests.c \
	engine/text/jinja_value.c \
	engine/text/mark_words.c engine/text/mark_words.h \
	engine/text/nfc.c engine/text/nfc.h \
	engine/text/pair_list.c \
	engine/text/pairs.c engine/text/pairs.h \
	engine/text/split.c engine/text/split.h \
	engine/text/token_hash.c \
	engine/text/tokenizer.c engine/text/tokenizer.h \
	engine/text/tokenizer_internal.h \
	engine/text/tokenizer_kept.c engine/text/tokenizer_kept.h
