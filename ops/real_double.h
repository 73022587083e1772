/* real_double.h — what a template over float and double is compiled with the second time; see real_float.h. */
#undef R
#undef NAME
#undef ROW
#define R double
#define NAME(x) x##_double
#define ROW(p) ((void)(p), &lnt_row_double)
