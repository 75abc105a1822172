/*
 * page_html.h - the elements of a page that needs nothing but itself.
 *
 * The page has its style inside, no script, and a policy that forbids a browser to load or run
 * anything.  It follows the light or dark setting of the reader, fits narrow screens, and
 * prints in dark on white.  All texts are foreign: they are written with ui/words/markup.h.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_HTML_H
#define MEMWALL_SRC_REPORT_PAGE_HTML_H

#include <stddef.h>
#include <stdio.h>

/* Write everything up to the first element of the main part, with title as the heading. */
void page_html_begin(FILE *to, const char *title, const char *below);
void page_html_end(FILE *to);

/* A section with a heading; id is a plain word. */
void page_html_section(FILE *to, const char *id, const char *heading);
void page_html_section_end(FILE *to);

/* Text in which a number and its unit are on one line.  The functions below write theirs so. */
void page_html_words(FILE *to, const char *text);

/* A paragraph of text. */
void page_html_text(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A table: its caption and the headings of its columns, separated by '|'.  A column whose
 * heading begins with '#' has numbers. */
void page_html_table(FILE *to, const char *caption, const char *columns);
void page_html_table_end(FILE *to);
/* Begin a row with its heading; write cells; end it. */
void page_html_row(FILE *to, const char *heading);
void page_html_cell(FILE *to, const char *text);
void page_html_number(FILE *to, const char *text);
void page_html_row_end(FILE *to);

/* Write JSON of n bytes as data that no browser runs. */
void page_html_data(FILE *to, const char *id, const char *json, size_t n);

#endif
