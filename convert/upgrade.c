/* upgrade.c — older forms of operators, rewritten to the newest. */
#include "convert/import.h"

lnt_status lnt_upgrade(lnt_importer *im, lnt_inode *n)
{
    (void)im;
    (void)n;
    return LNT_OK;
}
