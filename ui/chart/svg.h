/*
 * svg.h - the parts that all SVG drawings of this room share.
 */
#ifndef MEMWALL_UI_CHART_SVG_H
#define MEMWALL_UI_CHART_SVG_H

#include <stdio.h>


/* Write the style sheet with the colours of the classes. */
void svg_style(FILE *to);

/* Begin an element with a title, inside its description: the caller writes that, then calls
 * svg_begin(), which also draws the title, and ends the element with "</svg>". */
void svg_open(FILE *to, const char *id, const char *title, int width, int height);
void svg_begin(FILE *to, const char *title, int width, int height);

/* Write text from x on, cut to about `room` units, with its base line at y. */
void svg_text(FILE *to, double x, double y, double room, const char *class, const char *text);

#endif
