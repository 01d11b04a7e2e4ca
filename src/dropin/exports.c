/* SPDX-License-Identifier: MIT */
/*
 * The exported functions that do no more than the function of <verbena/verbs.h> of the same name:
 * the verbs that verbs.def gives an exported symbol, and the names and rates that need no device.
 * What does more is in the other files.
 */
#include "src/dropin/dropin.h"

#include <verbena/verbs.h>

/*
 * Programs compiled against the header's macros call them by other names; these are the functions.
 */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SERVE(result, symbol, name, parameters, arguments) \
	result symbol parameters                           \
	{                                                  \
		return vb_##name arguments;                \
	}

/* By how vb_<name>() finds the backend: those that take its name are in device.c. */
#define SERVE_CONTEXT(...) SERVE(__VA_ARGS__)
#define SERVE_DEVICE(...)  SERVE(__VA_ARGS__)
#define SERVE_OBJECT(...)  SERVE(__VA_ARGS__)
#define SERVE_BY_HAND(...) SERVE(__VA_ARGS__)
#define SERVE_NAMED(...)

#define VB_VERB(...)
#define VB_EXPORT(result, name, parameters, arguments, convention, by, object, symbol, version) \
	SERVE_##by(result, symbol, name, parameters, arguments)
#include <verbena/verbs.def>

SERVE(const char *, ibv_wc_status_str, wc_status_str, (enum ibv_wc_status status), (status))
SERVE(const char *, ibv_event_type_str, event_type_str, (enum ibv_event_type event), (event))
SERVE(const char *, ibv_node_type_str, node_type_str, (enum ibv_node_type type), (type))
SERVE(const char *, ibv_port_state_str, port_state_str, (enum ibv_port_state state), (state))
SERVE(int, ibv_rate_to_mult, rate_to_mult, (enum ibv_rate rate), (rate))
SERVE(enum ibv_rate, mult_to_ibv_rate, mult_to_rate, (int mult), (mult))
SERVE(int, ibv_rate_to_mbps, rate_to_mbps, (enum ibv_rate rate), (rate))
SERVE(enum ibv_rate, mbps_to_ibv_rate, mbps_to_rate, (int mbps), (mbps))
