/* SPDX-License-Identifier: MIT */
/*
 * The suites in the order in which they run: a suite comes behind those whose behaviour it builds
 * on.
 */
#include "test/conformance/suites.h"

#include <stddef.h>

#define SUITES(X)            \
	X(objects)           \
	X(memory)            \
	X(states)            \
	X(post)              \
	X(cq)                \
	X(events)            \
	X(rc)                \
	X(uc)                \
	X(ud)                \
	X(rnr)               \
	X(timeout)           \
	X(errors)            \
	X(flush)             \
	X(faults)            \
	X(repeats)           \
	X(injected)          \
	X(trace)             \
	X(srq)               \
	X(xrc)               \
	X(xrc_states)        \
	X(attributes)        \
	X(attributes_flight) \
	X(window)            \
	X(region)            \
	X(caches_path)       \
	X(caches_memory)     \
	X(wc)                \
	X(cq_ex)             \
	X(moderation)        \
	X(reconnect)         \
	X(returned)          \
	X(two)               \
	X(later)             \
	X(again)             \
	X(changes)           \
	X(infiniband)        \
	X(roce)              \
	X(counters)          \
	X(wr)                \
	X(atomic_write)      \
	X(mcast)             \
	X(cm_address)        \
	X(cm_connect)        \
	X(cm_ids)            \
	X(cm_infiniband)     \
	X(cm_datagram)       \
	X(cm_end)            \
	X(cm_endpoints)      \
	X(cm_errors)         \
	X(cm_options)        \
	X(cm_late)           \
	X(cm_srq)            \
	X(cm_groups)         \
	X(cm_removal)        \
	X(cm_threads)        \
	X(ports)             \
	X(domain)            \
	X(partitions)        \
	X(ends)              \
	X(wakeups)           \
	X(long)              \
	X(limits)            \
	X(misuse)            \
	X(mlx5)              \
	X(handles)           \
	X(quirks)            \
	X(quirks_device)     \
	X(quirks_late)       \
	X(quirks_late_cq)    \
	X(quirks_post)       \
	X(quirks_cq)         \
	X(quirks_states)     \
	X(quirks_responder)  \
	X(quirks_read)       \
	X(quirks_retry)      \
	X(quirks_ack)        \
	X(quirks_errors)     \
	X(quirks_flush)      \
	X(quirks_memory)     \
	X(quirks_window)     \
	X(quirks_srq)        \
	X(quirks_ud)

#define DECLARE(name)  extern const struct vt_suite vt_suite_##name;
#define POINT_TO(name) &vt_suite_##name,

SUITES(DECLARE)

const struct vt_suite *const vt_suites[] = {SUITES(POINT_TO) NULL};
