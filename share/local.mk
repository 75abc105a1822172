# share: completions, themes
THEMES = share/themes/dark.theme share/themes/light.theme \
	share/themes/high-contrast.theme share/themes/colour-blind.theme
themesdir = $(pkgdatadir)/themes
dist_themes_DATA = $(THEMES)
