/* See page_html.h. */
#include "config.h"

#include "src/report/page_html.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "ui/words/markup.h"

#define TEXT_BYTES 2048 /* of a paragraph; a longer one is cut */

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--line:#d8dee4;--card:#f6f8fa;"
    "--ground:#fff;--bar:#0b6bcb;--key:#0b5cad}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa6b2;"
    "--line:#313943;--card:#1a2029;--ground:#12161c;--bar:#3d86cb;--key:#7dbdff}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--ground)}\n"
    "header,main,footer{max-width:72rem;margin:0 auto;padding:0 1.25rem}\n"
    "header{padding-top:2rem}h1{margin:0;font-size:1.9rem;line-height:1.2;"
    "overflow-wrap:anywhere}\n"
    "h2{margin:2.5rem 0 .75rem;font-size:1.35rem;border-bottom:1px solid var(--line);"
    "padding-bottom:.3rem}h3{margin:1.5rem 0 .5rem;font-size:1.05rem}\n"
    "p{max-width:46rem;margin:.6rem 0}.dim,caption,footer{color:var(--dim)}\n"
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;padding:0;"
    "margin:1rem 0 0}a{color:var(--key)}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(11rem,45%),1fr));gap:.75rem;"
    "margin:1.25rem 0}\n"
    ".cards div{background:var(--card);border:1px solid var(--line);border-radius:.6rem;"
    "padding:.7rem .9rem}.cards dt{color:var(--dim);font-size:.85rem}\n"
    ".cards dd{margin:0;font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}\n"
    ".scroll{overflow-x:auto;margin:.75rem 0}\n"
    "table{border-collapse:collapse;font-size:.92rem;min-width:min(100%,30rem)}\n"
    "caption{text-align:left;padding:.2rem 0 .4rem;font-size:.9rem}\n"
    "th,td{text-align:left;padding:.28rem .9rem .28rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-weight:500}thead th{color:var(--dim)}\n"
    ".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    ".bar{display:block;height:.8rem;margin-top:.35rem;background:var(--bar);"
    "border-radius:.15rem;min-width:1px;print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}.wide{width:45%}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,31rem),1fr));"
    "gap:1rem;margin:1rem 0}\n"
    "figure{margin:0;border:1px solid var(--line);border-radius:.6rem;overflow:hidden;"
    "break-inside:avoid}figure svg{display:block;width:100%;height:auto}\n"
    "figure.one{max-width:46rem}\n"
    "@media (max-width:40rem){.wide{width:18%}td,th{padding-right:.6rem}}\n"
    "code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.92em;"
    "overflow-wrap:anywhere}\n"
    "footer{padding-top:2rem;padding-bottom:3rem;font-size:.9rem}\n"
    "@media print{body{font-size:11px}h2{break-after:avoid}tr{break-inside:avoid}nav{display:"
    "none}.charts{grid-template-columns:1fr 1fr}.scroll{overflow:visible}"
    "header,main,footer{max-width:none;padding:0}}\n";

void page_html_begin(FILE *to, const char *title, const char *below)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'\">\n<title>",
          to);
    markup_text(to, title);
    fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1>", style);
    markup_text(to, title);
    fputs("</h1>\n<p class=\"dim\">", to);
    markup_text(to, below);
    fputs("</p>\n</header>\n<main>\n", to);
}

void page_html_end(FILE *to)
{
    fputs("</body>\n</html>\n", to);
}

void page_html_section(FILE *to, const char *id, const char *heading)
{
    fprintf(to, "<section id=\"%s\" aria-labelledby=\"%s-h\">\n<h2 id=\"%s-h\">", id, id, id);
    markup_text(to, heading);
    fputs("</h2>\n", to);
}

void page_html_section_end(FILE *to)
{
    fputs("</section>\n", to);
}

void page_html_words(FILE *to, const char *text)
{
    size_t from = 0;

    for (size_t i = 1; text[0] != '\0' && text[i] != '\0'; i++) {
        if (text[i] != ' ' || !isdigit((unsigned char)text[i - 1]) ||
            (text[i + 1] != '%' && !isalpha((unsigned char)text[i + 1])))
            continue;
        markup_text_n(to, text + from, i - from);
        fputs("&#160;", to);
        from = i + 1;
    }
    markup_text(to, text + from);
}

void page_html_text(FILE *to, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fputs("<p>", to);
    page_html_words(to, text);
    fputs("</p>\n", to);
}

void page_html_table(FILE *to, const char *caption, const char *columns)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", to);
    markup_text(to, caption);
    fputs("\"><table>\n<caption>", to);
    markup_text(to, caption);
    fputs("</caption>\n<thead><tr>", to);
    while (*columns != '\0') {
        size_t n = strcspn(columns, "|");
        bool is_number = columns[0] == '#';

        fprintf(to, "<th scope=\"col\"%s>", is_number ? " class=\"n\"" : "");
        markup_text_n(to, columns + is_number, n - is_number);
        fputs("</th>", to);
        columns += n + (columns[n] == '|');
    }
    fputs("</tr></thead>\n<tbody>\n", to);
}

void page_html_table_end(FILE *to)
{
    fputs("</tbody></table></div>\n", to);
}

void page_html_row(FILE *to, const char *heading)
{
    fputs("<tr><th scope=\"row\">", to);
    page_html_words(to, heading);
    fputs("</th>", to);
}

void page_html_cell(FILE *to, const char *text)
{
    fputs("<td>", to);
    page_html_words(to, text);
    fputs("</td>", to);
}

void page_html_number(FILE *to, const char *text)
{
    fputs("<td class=\"n\">", to);
    page_html_words(to, text);
    fputs("</td>", to);
}

void page_html_row_end(FILE *to)
{
    fputs("</tr>\n", to);
}

void page_html_data(FILE *to, const char *id, const char *json, size_t n)
{
    fprintf(to, "<script type=\"application/json\" id=\"data-%s\">", id);
    for (size_t i = 0; i < n; i++)
        if (json[i] == '<' || json[i] == '>' || json[i] == '&')
            fprintf(to, "\\u%04x", (unsigned)json[i]);
        else
            fputc(json[i], to);
    fputs("</script>\n", to);
}
