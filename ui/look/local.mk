# ui/look: roles of text, and themes, which give each role its look.  src includes it, too.
libui_a_SOURCES += \
	ui/look/role.c ui/look/role.h \
	ui/look/theme.c ui/look/theme.h

# The themes that come with the program are compiled in from their files.
nodist_libui_a_SOURCES = ui/look/theme_text.c
CLEANFILES += ui/look/theme_text.c
EXTRA_DIST += ui/look/theme_text.awk
ui/look/theme_text.c: $(THEMES) ui/look/theme_text.awk
	$(AM_V_GEN)$(MKDIR_P) ui/look && cd $(srcdir) && \
	  $(AWK) -f ui/look/theme_text.awk $(THEMES) > $(abs_builddir)/ui/look/theme_text.c
