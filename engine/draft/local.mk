# engine/draft: tokens guessed ahead, which a pass verifies.
EXTRA_DIST += engine/draft/README.md
libengine_a_SOURCES += \
	engine/draft/drafter.c engine/draft/drafter.h \
	engine/draft/ngram.c engine/draft/ngram.h engine/draft/ngram_drafter.c \
	engine/draft/depth.c engine/draft/depth.h
