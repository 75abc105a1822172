# man: pages
