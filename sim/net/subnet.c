/* SPDX-License-Identifier: MIT */
#include "sim/net/subnet.h"

#include "sim/base/core.h"
#include "sim/qp/qp.h"

#include <errno.h>

int sim_port_set_pkey(struct sim_port *port, unsigned int index, uint16_t pkey)
{
	struct sim_qp *qp;
	uint32_t place = 0;

	if (index >= port->pkey_count)
		return EINVAL;
	port->pkeys[index] = pkey;
	while ((qp = sim_table_next(&port->device->qps, &place)))
		sim_qp_read_pkey(qp);
	sim_engine_changed(port->device->engine);
	sim_port_event(port, IBV_EVENT_PKEY_CHANGE);
	return 0;
}

void sim_device_kill(struct sim_device *device)
{
	const struct sim_host *host = &device->engine->host;
	const struct sim_event event = {.type = IBV_EVENT_DEVICE_FATAL};
	struct sim_qp *qp;
	uint32_t place = 0;

	if (device->dead)
		return;
	device->dead = true;
	sim_engine_changed(device->engine);
	while ((qp = sim_table_next(&device->qps, &place)))
		if (sim_qp_state(qp) != IBV_QPS_RESET)
			sim_qp_fail(qp, SIM_BY_DEVICE);
	host->async_event(host->arg, device, &event);
}
