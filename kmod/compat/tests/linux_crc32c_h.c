// SPDX-License-Identifier: GPL-2.0
/* Up to 6.14: crc32c() has a header of its own. */
#include <linux/crc32c.h>
