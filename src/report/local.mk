# src/report: the HTML page.
memwall_SOURCES += src/report/page.c src/report/page.h src/report/page_facts.c \
	src/report/page_facts.h src/report/page_html.c src/report/page_html.h \
	src/report/page_plan.c src/report/page_plan.h src/report/page_record.c \
	src/report/page_record.h src/report/page_results.c src/report/page_results.h \
	src/report/page_stop.c src/report/page_stop.h src/report/page_track.c \
	src/report/page_track.h src/report/page_words.c
