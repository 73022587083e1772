/* sweep_chart.c — a sweep as a picture: rows a second over the values of the last axis. */
#include "cli/measure/svg.h"
#include "cli/measure/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LEFT = 90, TOP = 40, WIDTH = 560, HEIGHT = 300, LINE = 18, MOST_TICKS = 5 };

static const char *const COLOR[] = {"#2a6fbb", "#c2571a", "#3d8b37", "#8a4fa3", "#a3333d", "#5c6670"};
enum { COLORS = sizeof COLOR / sizeof *COLOR };

static double rate(const lnt_sweep_row *row, bool ort)
{
    const double mean = ort ? row->ort.mean : row->linnet.mean;
    return row->error || !(mean > 0) ? NAN : (double)row->rows / mean;
}

/* The top of the scale: 1, 2 or 5 times a power of ten. */
static double scale_of(const lnt_sweep *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n_rows; i++)
        most = fmax(most, fmax(rate(&s->row[i], false), s->paired ? rate(&s->row[i], true) : 0));
    const double unit = most > 0 ? pow(10, floor(log10(most))) : 1;
    return most <= unit ? unit : most <= 2 * unit ? 2 * unit : most <= 5 * unit ? 5 * unit : 10 * unit;
}

static double x_of(size_t i, size_t n)
{
    return LEFT + (n > 1 ? (double)WIDTH * (double)i / (double)(n - 1) : WIDTH / 2.);
}

static void put_axes(const lnt_sweep *s, const lnt_sweep_axis *last, double scale, FILE *out)
{
    for (int k = 0; k <= MOST_TICKS; k++) {
        const int y = TOP + HEIGHT - HEIGHT * k / MOST_TICKS;
        fprintf(out,
                "<path class=\"g\" d=\"M%d %dh%d\"/><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%g</text>\n",
                LEFT, y, WIDTH, LEFT - 8, y + 4, scale * k / MOST_TICKS);
    }
    for (size_t i = 0; i < last->n; i++)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRId64 "</text>\n",
                x_of(i, last->n), TOP + HEIGHT + LINE, last->value[i]);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", LEFT + WIDTH / 2,
            TOP + HEIGHT + 2 * LINE);
    lnt_svg_text(last->name, out);
    fprintf(out, "</text>\n<text x=\"%d\" y=\"%d\">rows a second%s</text>\n", LEFT, TOP - LINE,
            s->paired ? "; dashed: onnxruntime" : "");
}

/* The rows from first on that differ in the last axis alone: broken where one could not be measured. */
static void put_line(const lnt_sweep *s, size_t first, bool ort, const char *color, double scale, FILE *out)
{
    const size_t n = s->axis[s->n_axes - 1].n;
    bool drawn = false;
    fprintf(out, "<path class=\"l%s\" stroke=\"%s\" d=\"", ort ? " o" : "", color);
    for (size_t i = 0; i < n; i++) {
        const double y = rate(&s->row[first + i], ort);
        if (isfinite(y))
            fprintf(out, "%c%.1f %.1f", drawn ? 'L' : 'M', x_of(i, n), TOP + HEIGHT * (1 - y / scale));
        drawn = isfinite(y);
    }
    fputs("\"/>\n", out);
    for (size_t i = 0; i < n; i++) {
        const double y = rate(&s->row[first + i], ort);
        if (isfinite(y))
            fprintf(out, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", color, x_of(i, n),
                    TOP + HEIGHT * (1 - y / scale));
    }
}

/* What the line's rows have in common. */
static void put_legend(const lnt_sweep *s, const lnt_sweep_row *row, int y, const char *color, FILE *out)
{
    fprintf(out, "<path stroke=\"%s\" class=\"l\" d=\"M%d %dh20\"/><text x=\"%d\" y=\"%d\">", color,
            LEFT + WIDTH + 20, y - 4, LEFT + WIDTH + 46, y);
    for (size_t k = 0; k + 1 < s->n_axes; k++) {
        fputs(k ? ", " : "", out);
        lnt_svg_text(s->axis[k].name, out);
        fprintf(out, " %" PRId64, row->extent[k]);
    }
    fputs("</text>\n", out);
}

void lnt_sweep_chart(const lnt_sweep *s, FILE *out)
{
    const lnt_sweep_axis *last = &s->axis[s->n_axes - 1];
    const size_t lines = s->n_rows / last->n;
    const double scale = scale_of(s);
    const int legend = s->n_axes > 1 ? TOP + LINE * (int)lines : 0, height = TOP + HEIGHT + 3 * LINE;
    lnt_svg_begin(LEFT + WIDTH + (s->n_axes > 1 ? 220 : 40), legend > height ? legend : height, out);
    put_axes(s, last, scale, out);
    for (size_t i = 0; i < lines; i++) {
        const char *color = COLOR[i % COLORS];
        put_line(s, i * last->n, false, color, scale, out);
        if (s->paired)
            put_line(s, i * last->n, true, color, scale, out);
        if (s->n_axes > 1)
            put_legend(s, &s->row[i * last->n], TOP + LINE * (int)i, color, out);
    }
    fputs("</svg>\n", out);
}
