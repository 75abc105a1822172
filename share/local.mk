# share: completions, themes, the guide, and files for desktops
THEMES = share/themes/dark.theme share/themes/light.theme \
	share/themes/high-contrast.theme share/themes/high-contrast-light.theme \
	share/themes/colour-blind.theme \
	share/themes/catppuccin-latte.theme share/themes/catppuccin-mocha.theme \
	share/themes/dracula.theme \
	share/themes/gruvbox-dark.theme share/themes/gruvbox-light.theme \
	share/themes/nord.theme \
	share/themes/solarized-dark.theme share/themes/solarized-light.theme \
	share/themes/tokyo-night.theme
themesdir = $(pkgdatadir)/themes
dist_themes_DATA = $(THEMES)

# Shapes of published models: "memwall plan NAME" and "memwall doctor" plan them.
dist_pkgdata_DATA = share/known-models.json
# The format of results, for programs that read them.
schemasdir = $(pkgdatadir)/schemas
dist_schemas_DATA = share/schemas/measurements.schema.json \
	share/schemas/plan.schema.json share/schemas/doctor.schema.json \
	share/schemas/inspect.schema.json share/schemas/telemetry.schema.json \
	share/schemas/tried.schema.json

iconsdir = $(datadir)/icons/hicolor/scalable/apps
dist_icons_DATA = share/icons/memwall.svg
applicationsdir = $(datadir)/applications
dist_applications_DATA = share/applications/memwall.desktop
# "systemctl --user enable --now memwall" serves the configured model.
systemdunitsdir = $(prefix)/lib/systemd/user
dist_systemdunits_DATA = share/systemd/memwall.service
metainfodir = $(datadir)/metainfo
dist_metainfo_DATA = share/metainfo/org.memwall.memwall.metainfo.xml

# The program writes parts of the man pages from its tables.  After a change of a
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

# Pictures of the screen: "make pictures" draws them from this program and the guide.
EXTRA_DIST += share/pictures/record.py share/pictures/terminal_svg.py \
	share/pictures/README.md share/pictures/picker.svg \
	share/pictures/experts.svg share/pictures/ladder.svg share/pictures/pages.svg \
	share/pictures/wall.svg share/pictures/beside.svg \
	share/pictures/doctor.svg share/pictures/plan.svg \
	share/pictures/sweep.svg share/pictures/sweep-chart.svg \
	share/pictures/report.png share/pictures/report-dark.png \
	share/pictures/screen.svg share/pictures/session.svg share/pictures/drafts.svg \
	share/pictures/dark-40x12.svg share/pictures/light-40x12.svg \
	share/pictures/dark-80x24.svg share/pictures/light-80x24.svg \
	share/pictures/dark-100x30.svg share/pictures/light-100x30.svg \
	share/pictures/dark-160x50.svg share/pictures/light-160x50.svg \
	share/pictures/dark-250x70.svg share/pictures/light-250x70.svg

pictures: memwall
	$(PYTHON3) $(top_srcdir)/share/pictures/record.py ./memwall

# Pictures of the screen at many sizes and in several themes, to look at: they are not kept.
# make pictures-review MODEL="FILE --memory 600M"
pictures-review: memwall
	$(PYTHON3) $(top_srcdir)/share/pictures/record.py ./memwall review pictures-review $(MODEL)
.PHONY: pictures pictures-review

# The model in the box and its draft head.  "make guide" and "make guide-assistant" train them
# again: hours and half an hour; both can be interrupted.
guidedir = $(pkgdatadir)/models
dist_guide_DATA = share/models/memwall-guide.gguf share/models/memwall-guide-assistant.gguf
GUIDE_TRAIN = share/models/train
EXTRA_DIST += share/models/README.md \
	$(GUIDE_TRAIN)/assistant.py $(GUIDE_TRAIN)/guide_file.py \
	$(GUIDE_TRAIN)/corpus.py $(GUIDE_TRAIN)/evaluate.py $(GUIDE_TRAIN)/export.py \
	$(GUIDE_TRAIN)/kernels.c $(GUIDE_TRAIN)/model.py $(GUIDE_TRAIN)/ops.py \
	$(GUIDE_TRAIN)/reference.py $(GUIDE_TRAIN)/sample.py $(GUIDE_TRAIN)/tokenizer.py \
	$(GUIDE_TRAIN)/train.py $(GUIDE_TRAIN)/corpus/grammar.txt \
	$(GUIDE_TRAIN)/corpus/machine.txt $(GUIDE_TRAIN)/corpus/model.txt \
	$(GUIDE_TRAIN)/corpus/program.txt $(GUIDE_TRAIN)/heldback.txt \
	$(GUIDE_TRAIN)/synonyms.txt $(GUIDE_TRAIN)/system.txt $(GUIDE_TRAIN)/validation.txt

guide:
	$(PYTHON3) $(top_srcdir)/$(GUIDE_TRAIN)/train.py
guide-assistant:
	$(PYTHON3) $(top_srcdir)/$(GUIDE_TRAIN)/assistant.py
.PHONY: guide guide-assistant
