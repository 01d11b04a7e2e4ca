/* SPDX-License-Identifier: MIT */
/* Refusals: the errno value of a call that the engine refuses, and why. */
#ifndef SIM_BASE_REFUSE_H
#define SIM_BASE_REFUSE_H

#include "sim/base/core.h"

#include <verbena/why.h>

/* Returns the errno value of the calls that the reason refuses: that of its row. */
int sim_reason_errno(enum vb_reason reason);

/*
 * Keeps why in the engine, for its owner to read, and returns the errno value of the reason: `return
 * sim_refuse(engine, (struct vb_why){VB_WHY_QP_TIMEOUT, {number, timeout}})`. The owner takes
 * the reason by sim_take_refusal().
 */
int sim_refuse(struct sim_engine *engine, struct vb_why why);

/* Refuses with ENOMEM, because the process has no memory. */
int sim_refuse_memory(struct sim_engine *engine);

/* Refuses with @error of a call of the system; @call says which, and stays valid until the owner has taken
 * the reason. */
int sim_refuse_system(struct sim_engine *engine, int error, const char *call);

/* Refuses with ENOMEM, because the device has as many objects as its limit allows; @name is the
 * limit's field of struct ibv_device_attr. */
int sim_refuse_limit(struct sim_engine *engine, const char *name, int limit);
/* No block of numbers is left; @numbers is "QP numbers" and so on. */
int sim_refuse_numbers(struct sim_engine *engine, const char *numbers);

/* Returns the reason of EMFILE, ENFILE or ENOMEM, which the call of the system has returned that
 * opens a descriptor; VB_WHY_NONE for another error. The text of the first two says what for. */
enum vb_reason sim_descriptor_reason(int error);

/* Takes the reason of a call that returned @error. Returns false if no reason has been kept for it. */
bool sim_take_refusal(struct sim_engine *engine, int error, struct vb_why *why);

#endif
