/* SPDX-License-Identifier: MIT */
/*
 * The exported functions that only call the function of <verbena/verbs.h> with the same name: the
 * verbs to which verbs.def gives an exported symbol, and the names and rates, which need no device.
 * The other exported functions are in the other files.
 */
#include "src/dropin/dropin.h"

#include <verbena/verbs.h>

/* The header has macros of these names, too. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SERVE(result, symbol, name, parameters, arguments) \
	result symbol parameters                           \
	{                                                  \
		return vb_##name arguments;                \
	}

/*
 * What a row becomes, by how vb_<name>() finds the backend. device.c has the functions that name
 * the backend.
 */
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
