/* svg.c — what pictures of measurements have in common. */
#include "cli/measure/svg.h"

void lnt_svg_begin(int width, int height, FILE *out)
{
    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
        "role=\"img\">\n<style>text{font:12px "
        "sans-serif;fill:#333}.g{stroke:#ddd}.l{fill:none;stroke-width:2}.o{stroke-dasharray:5 4}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        width, height);
}

void lnt_svg_text(const char *text, FILE *out)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
}
