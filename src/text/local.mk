# src/text: prompts, texts and answers.
memwall_SOURCES += src/text/answer_out.c src/text/answer_out.h src/text/eval_text.c \
	src/text/eval_text.h src/text/eval_watch.c src/text/eval_watch.h \
	src/text/id_list.c src/text/id_list.h src/text/once.c src/text/once.h \
	src/text/form.c src/text/form.h \
	src/text/prompt.c src/text/prompt.h src/text/summary.c src/text/summary.h
