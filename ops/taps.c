/* taps.c — sums over a few elements of every channel. */
#include "ops/taps.h"

#include "ops/real_float.h"
#include "ops/taps.inc.h"
#include "ops/real_double.h"
#include "ops/taps.inc.h"
