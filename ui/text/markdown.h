/*
 * markdown.h - renders one segment of a text (segment.h) to lines of rich text (rich.h).
 *
 * md4c parses the Markdown; code in fences is coloured line by line.  Raw HTML is shown as
 * text.  The address of a link follows its text, since a link that hides its target is an
 * attack.  Definitions of links are shown as text, so nothing is dropped.  Line breaks of the
 * source are kept.
 */
#ifndef MEMWALL_UI_TEXT_MARKDOWN_H
#define MEMWALL_UI_TEXT_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/text/rich.h"
#include "ui/text/segment.h"

/*
 * Render seg of text for a pane of width columns, which decides how tables are shown.  role
 * is the role of plain text.  Starts r; the caller makes the rows.
 */
void markdown_render(struct rich *r, const char *text, const struct segment *seg, int width,
                     enum ui_role role, bool ascii);

/*
 * Calls block with each code block of a text, without fences and without the indentation of
 * lists, for copying.  The callback returns false to stop.
 */
typedef bool markdown_code_fn(void *ctx, const char *label, size_t label_n, const char *code,
                              size_t n);
void markdown_code(const char *text, size_t n, markdown_code_fn *block, void *ctx);

#endif
