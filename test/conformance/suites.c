/* SPDX-License-Identifier: MIT */
/* The suites, in the order in which they run: what later ones build on comes first. */
#include "conformance.h"

extern const struct vt_suite vt_suite_objects, vt_suite_memory, vt_suite_states, vt_suite_post,
	vt_suite_cq, vt_suite_events, vt_suite_rc, vt_suite_uc, vt_suite_ud, vt_suite_rnr,
	vt_suite_timeout, vt_suite_errors, vt_suite_flush, vt_suite_faults, vt_suite_trace;
extern const struct vt_suite vt_suite_infiniband, vt_suite_roce, vt_suite_counters,
	vt_suite_moderation, vt_suite_xrc_states;
extern const struct vt_suite vt_suite_srq, vt_suite_xrc, vt_suite_window, vt_suite_region,
	vt_suite_cq_ex, vt_suite_wr, vt_suite_atomic_write, vt_suite_mcast, vt_suite_ports,
	vt_suite_domain, vt_suite_limits, vt_suite_misuse, vt_suite_quirks, vt_suite_quirks_rxe,
	vt_suite_quirks_walk;

/* clang-format off */
const struct vt_suite *const vt_suites[] = {
	&vt_suite_objects,
	&vt_suite_memory,
	&vt_suite_states,
	&vt_suite_post,
	&vt_suite_cq,
	&vt_suite_events,
	&vt_suite_rc,
	&vt_suite_uc,
	&vt_suite_ud,
	&vt_suite_rnr,
	&vt_suite_timeout,
	&vt_suite_errors,
	&vt_suite_flush,
	&vt_suite_faults,
	&vt_suite_trace,
	&vt_suite_srq,
	&vt_suite_xrc,
	&vt_suite_xrc_states,
	&vt_suite_window,
	&vt_suite_region,
	&vt_suite_cq_ex,
	&vt_suite_moderation,
	&vt_suite_infiniband,
	&vt_suite_roce,
	&vt_suite_counters,
	&vt_suite_wr,
	&vt_suite_atomic_write,
	&vt_suite_mcast,
	&vt_suite_ports,
	&vt_suite_domain,
	&vt_suite_limits,
	&vt_suite_misuse,
	&vt_suite_quirks,
	&vt_suite_quirks_rxe,
	&vt_suite_quirks_walk,
	NULL,
};
/* clang-format on */
