/*
 * markdown.h - one segment of a text (segment.h) to lines as they are shown (rich.h).
 *
 * Markdown is read by md4c, code between fences is coloured line by line.  Raw HTML is
 * text.  A link's address stands behind its text, for a link that hides where it leads is
 * an attack.  What Markdown would not show at all (definitions of links) is shown as text:
 * nothing is dropped.  Line breaks of the source stay.
 */
#ifndef MEMWALL_UI_TEXT_MARKDOWN_H
#define MEMWALL_UI_TEXT_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/text/rich.h"
#include "ui/text/segment.h"

/*
 * Render seg of text for a pane of width columns (a table that does not fit is shown
 * otherwise).  role: of plain text.  r is started here; rows are the caller's business.
 */
void markdown_render(struct rich *r, const char *text, const struct segment *seg, int width,
                     enum ui_role role, bool ascii);

/*
 * The code blocks of a whole text, as they are to be copied: no fences, no indentation of
 * a list.  Calls block for each; it returns false to stop.
 */
typedef bool markdown_code_fn(void *ctx, const char *label, size_t label_n, const char *code,
                              size_t n);
void markdown_code(const char *text, size_t n, markdown_code_fn *block, void *ctx);

#endif
