/* svg.h — what pictures of measurements have in common. */
#ifndef LNT_CLI_MEASURE_SVG_H
#define LNT_CLI_MEASURE_SVG_H

#include <stdio.h>

/* The picture's begin: its size, a white ground, and the look of text, of .g, the grid, and of .l, lines; .o: dashed.
 * It ends with "</svg>\n". */
void lnt_svg_begin(int width, int height, FILE *out);
/* Text as it may stand between tags. */
void lnt_svg_text(const char *text, FILE *out);

#endif
