/* upgrade.h — rules that rewrite an operator's older form. */
#ifndef LNT_CONVERT_IMPORT_UPGRADE_H
#define LNT_CONVERT_IMPORT_UPGRADE_H

#include "convert/import/import.h"

typedef struct lnt_upgrade_rule {
    const char *op;
    int64_t before; /* of opsets below this one */
    lnt_status (*apply)(lnt_importer *im, lnt_inode *n);
} lnt_upgrade_rule;

/* Ends with a rule without op. Applied in order, after attributes have become inputs. */
extern const lnt_upgrade_rule lnt_upgrade_rules[];

#endif
