# share: completions, themes
THEMES = share/themes/dark.theme share/themes/light.theme \
	share/themes/high-contrast.theme share/themes/colour-blind.theme
themesdir = $(pkgdatadir)/themes
dist_themes_DATA = $(THEMES)

# Completions are written by the program from its table of options; "make update-tables"
# writes them and the lists of the man pages anew, a test compares.
bashcompdir = $(datadir)/bash-completion/completions
zshcompdir = $(datadir)/zsh/site-functions
fishcompdir = $(datadir)/fish/vendor_completions.d
dist_bashcomp_DATA = share/completions/memwall
dist_zshcomp_DATA = share/completions/_memwall
dist_fishcomp_DATA = share/completions/memwall.fish
EXTRA_DIST += share/update_tables.sh

update-tables: memwall
	@$(SHELL) $(top_srcdir)/share/update_tables.sh ./memwall $(top_srcdir)
.PHONY: update-tables
