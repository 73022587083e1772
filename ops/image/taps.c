/* taps.c — sums over a few elements of every channel. */
#include "ops/image/taps.h"

#include "ops/real_float.h"
#include "ops/image/taps.inc.h"
#include "ops/real_double.h"
#include "ops/image/taps.inc.h"
