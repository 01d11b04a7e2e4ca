/* SPDX-License-Identifier: MIT */
/* The mirrors of identifiers and events of the connection manager. */
#ifndef TEST_PEER_MIRROR_CM_H
#define TEST_PEER_MIRROR_CM_H

#include "test/peer/mirror.h"

/* In B's process: copy the public fields. The QP, the CQs and the context of an identifier get mirrors, too. */
void mirror_pull_id(struct mirror *mirror);
void mirror_pull_event(struct mirror *mirror);

#endif
