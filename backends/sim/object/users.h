/* SPDX-License-Identifier: MIT */
/* Which objects use another object, in words. */
#ifndef BACKENDS_SIM_OBJECT_USERS_H
#define BACKENDS_SIM_OBJECT_USERS_H

#include "backends/sim/object/objects.h"

/*
 * Returns the users of an object of the world, counted by kind, with the number of the first: "2 QPs
 * (the first is QP 0x11), 1 MR (lkey 0x1c0a00)". The users of an import, and of the other imports
 * of its root, count as users of the root. The words stay valid until the thread's next call.
 */
const char *users_text(enum kind kind, const void *object);

/* Writes counts of objects by kind, such as "1 QP, 2 CQs"; "" if all are 0. Returns text. */
const char *kinds_text(const uint32_t counts[KINDS], char *text, size_t size_bytes);

#endif
