/* real_float.h — what a template over float and double (ops/NAME.inc.h) is compiled with the first time: the
 * type, the suffix of its functions, and the row kernels for parameters p, which have a field row. */
#undef R
#undef NAME
#undef ROW
#define R float
#define NAME(x) x##_float
#define ROW(p) ((p)->row)
