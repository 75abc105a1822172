# share: completions, themes, and files for desktops
THEMES = share/themes/dark.theme share/themes/light.theme \
	share/themes/high-contrast.theme share/themes/colour-blind.theme
themesdir = $(pkgdatadir)/themes
dist_themes_DATA = $(THEMES)

iconsdir = $(datadir)/icons/hicolor/scalable/apps
dist_icons_DATA = share/icons/memwall.svg
applicationsdir = $(datadir)/applications
dist_applications_DATA = share/applications/memwall.desktop
metainfodir = $(datadir)/metainfo
dist_metainfo_DATA = share/metainfo/org.memwall.memwall.metainfo.xml

# The program writes completions and parts of the man pages from its tables.  After a change of a
# table, run "make update-tables"; a test compares them.
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
