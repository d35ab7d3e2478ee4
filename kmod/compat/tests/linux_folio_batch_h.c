// SPDX-License-Identifier: GPL-2.0
/* Not in 6.12, in 7.3: struct folio_batch has a header of its own. */
#include <linux/folio_batch.h>
