# engine/draft: tokens guessed ahead, which a pass verifies.
libengine_a_SOURCES += \
	engine/draft/ngram.c engine/draft/ngram.h \
	engine/draft/depth.c engine/draft/depth.h
