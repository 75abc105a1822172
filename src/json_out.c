/* See json_out.h. */
#include "config.h"

#include "src/json_out.h"

#include <string.h>

void json_out_text(FILE *to, const char *text, size_t n)
{
    putc('"', to);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", to);
        else if (c == '\t')
            fputs("\\t", to);
        else if (c < 0x20 || c == 0x7f)
            fprintf(to, "\\u%04x", c);
        else
            putc(c, to);
    }
    putc('"', to);
}

void json_out_string(FILE *to, const char *text)
{
    json_out_text(to, text, strlen(text));
}
