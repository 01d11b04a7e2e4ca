/* SPDX-License-Identifier: MIT */
#include "src/dropin/dropin.h"

#include <verbena/verbs.h>

const char *dropin_wc_status_str(enum ibv_wc_status status)
{
	return vb_wc_status_str(status);
}

const char *dropin_event_type_str(enum ibv_event_type event)
{
	return vb_event_type_str(event);
}

const char *dropin_node_type_str(enum ibv_node_type node_type)
{
	return vb_node_type_str(node_type);
}

const char *dropin_port_state_str(enum ibv_port_state port_state)
{
	return vb_port_state_str(port_state);
}

int dropin_rate_to_mult(enum ibv_rate rate)
{
	return vb_rate_to_mult(rate);
}

enum ibv_rate dropin_mult_to_rate(int mult)
{
	return vb_mult_to_rate(mult);
}

int dropin_rate_to_mbps(enum ibv_rate rate)
{
	return vb_rate_to_mbps(rate);
}

enum ibv_rate dropin_mbps_to_rate(int mbps)
{
	return vb_mbps_to_rate(mbps);
}
