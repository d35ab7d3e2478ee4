// SPDX-License-Identifier: GPL-2.0
/* Since 6.3: file locks have a header of their own. */
#include <linux/filelock.h>
