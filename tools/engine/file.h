/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the user-space build of the engine has beyond kmod/partition.h.
 */
#ifndef _ENGINE_FILE_H
#define _ENGINE_FILE_H

#include "../../kmod/file.h"

/* The descriptor behind a file, for sendfile(2): valid as long as the file is. */
int plog_file_fd(const struct plog_file *file);

#endif
