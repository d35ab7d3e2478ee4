// SPDX-License-Identifier: GPL-2.0
/* Since 6.2: device_type.devnode gets a const device. */
#include <linux/device.h>

char *probe_devnode(const struct device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid);
struct device_type probe_type = { .devnode = probe_devnode };
