/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef _ENGINE_LINUX_STRING_H
#define _ENGINE_LINUX_STRING_H

#include <string.h>

#endif
