# man: pages
dist_man_MANS += man/memwall-telemetry.5
