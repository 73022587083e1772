/* duel_chart.c — the paired benchmark as a picture: how many times more of each onnxruntime takes. */
#include "cli/measure/duel.h"
#include "cli/measure/svg.h"
#include "cli/data/model.h"

#include <inttypes.h>
#include <math.h>

enum { LEFT = 130, TOP = 60, WIDTH = 400, RIGHT = 230, LINE = 24, BAR = 16, BOTTOM = 40 };

/* Powers of ten that the scale reaches from and to; 1 lies within. */
typedef struct range {
    int low, high;
} range;

static double ratio_of(const lnt_paired_row *row)
{
    return row->linnet > 0 && row->ort > 0 ? row->ort / row->linnet : NAN;
}

static range range_of(const lnt_paired_rows *r)
{
    range found = {0, 1};
    for (size_t i = 0; i < r->n; i++) {
        const double power = log10(ratio_of(&r->row[i]));
        if (isfinite(power)) {
            found.low = (int)fmin(found.low, floor(power));
            found.high = (int)fmax(found.high, ceil(power));
        }
    }
    return found;
}

static double x_of(range at, double power)
{
    return LEFT + WIDTH * (power - at.low) / (at.high - at.low);
}

static void put_grid(range at, int bottom, FILE *out)
{
    for (int k = at.low; k <= at.high; k++)
        fprintf(out,
                "<path class=\"g\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%g</text>\n",
                x_of(at, k), TOP, bottom, x_of(at, k), bottom + 16, pow(10, k));
}

static void put_bar(const lnt_paired_row *row, range at, int y, FILE *out)
{
    const double ratio = ratio_of(row), one = x_of(at, 0), end = x_of(at, log10(ratio));
    char a[24], b[24];
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 10, y + 12, row->what);
    if (isfinite(ratio))
        fprintf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", fmin(one, end),
                y, fabs(end - one), BAR, ratio < 1 ? "#c2571a" : "#2a6fbb");
    fprintf(out, "<text x=\"%d\" y=\"%d\">%s | %s", LEFT + WIDTH + 12, y + 12,
            lnt_paired_text(row, row->linnet, a), lnt_paired_text(row, row->ort, b));
    if (isfinite(ratio))
        fprintf(out, ", <tspan font-weight=\"bold\">%.2f</tspan>", ratio);
    fputs("</text>\n", out);
}

void lnt_paired_chart(const lnt_paired_options *o, const lnt_paired *d, FILE *out)
{
    lnt_paired_rows r;
    lnt_paired_list(o, d, &r);
    const range at = range_of(&r);
    const int bottom = TOP + LINE * (int)r.n;
    lnt_svg_begin(LEFT + WIDTH + RIGHT, bottom + BOTTOM, out);
    fprintf(out, "<text x=\"%d\" y=\"20\">", LEFT);
    lnt_svg_text(o->onnx, out);
    fprintf(out, ", %" PRIu32 " thread%s, level %s: ratio %.3f, 95 %% interval %.3f to %.3f%s</text>\n",
            o->threads, o->threads == 1 ? "" : "s", d->linnet.reply.level, d->ratio, d->low, d->high,
            d->agree ? "" : "; the outputs differ");
    fprintf(out, "<text x=\"%d\" y=\"42\">onnxruntime %s over Linnet %s: above 1 Linnet takes less</text>\n",
            LEFT, d->ort.reply.version, d->linnet.reply.version);
    put_grid(at, bottom, out);
    for (size_t i = 0; i < r.n; i++)
        put_bar(&r.row[i], at, TOP + LINE * (int)i + (LINE - BAR) / 2, out);
    fputs("</svg>\n", out);
}
