/* SPDX-License-Identifier: MIT */
#ifndef CM_H
#define CM_H

/* cmocka wants these before it, in this order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
