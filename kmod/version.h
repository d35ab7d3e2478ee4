/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PLOG_VERSION_H
#define _PLOG_VERSION_H

#define PLOG_VERSION	"0.1"

#endif /* _PLOG_VERSION_H */
