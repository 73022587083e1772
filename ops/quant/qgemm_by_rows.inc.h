/* qgemm_by_rows.inc.h — a tile of up to six rows, from tile_of(rows, product) that the including file has for a number
 * of rows that is known when it is compiled. */
static void tile(const lnt_qproduct *p)
{
    switch (p->rows) {
    case 1: tile_of(1, p); return;
    case 2: tile_of(2, p); return;
    case 3: tile_of(3, p); return;
    case 4: tile_of(4, p); return;
    case 5: tile_of(5, p); return;
    default: tile_of(6, p); return;
    }
}
