/* number.c — an element of any numeric type, read and written as a double. */
#include "ops/number.h"

double lnt_load_number(lnt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: return (double)comparable(((const T *)data)[i]);
        LNT_NUMBER_LIST(X)
#undef X
    case LNT_BOOL: return ((const uint8_t *)data)[i] != 0;
    default: return 0;
    }
}

bool lnt_store_number(lnt_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: ((T *)data)[i] = store((C)value); return true;
        LNT_NUMBER_LIST(X)
#undef X
    case LNT_BOOL: ((uint8_t *)data)[i] = value != 0; return true;
    default: return false;
    }
}
