// SPDX-License-Identifier: GPL-2.0
/* Since 6.12: unaligned access is no matter of the architecture's. */
#include <linux/unaligned.h>
