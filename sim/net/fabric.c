/* SPDX-License-Identifier: MIT */
#include "sim/net/fabric.h"

#include "sim/net/net.h"
#include "sim/object/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sim_links_destroy(struct sim_links *links)
{
	while (links->given) {
		struct sim_link *link = links->given;

		links->given = link->next;
		free(link);
	}
}

void sim_links_postpone(struct sim_links *links, uint64_t duration_ns)
{
	for (struct sim_link *link = links->given; link; link = link->next) {
		link->busy_until_ns[0] += duration_ns;
		link->busy_until_ns[1] += duration_ns;
	}
}

static struct sim_link *find_given(const struct sim_links *links, const struct sim_port *a,
				   const struct sim_port *b)
{
	for (struct sim_link *link = links->given; link; link = link->next)
		if ((link->a == a && link->b == b) || (link->a == b && link->b == a))
			return link;
	return NULL;
}

int sim_fabric_join(struct sim_engine *engine, struct sim_device *a, struct sim_device *b,
		    uint64_t delay_ns, uint64_t bits_per_second)
{
	struct sim_links *links = &engine->net->links;
	struct sim_link *link;

	if (a->ports[0].link_layer != b->ports[0].link_layer)
		return EINVAL;
	if (links->given && sim_fabric_link(engine, &a->ports[0], &b->ports[0]))
		return EEXIST;
	link = malloc(sizeof(*link));
	if (!link)
		return ENOMEM;
	*link = (struct sim_link){
		.next = links->given,
		.a = &a->ports[0],
		.b = &b->ports[0],
		.delay_ns = delay_ns,
		.bits_per_second = bits_per_second,
	};
	links->given = link;
	engine->address_epoch++;
	sim_engine_changed(engine);
	return 0;
}

struct sim_link *sim_fabric_link(struct sim_engine *engine, struct sim_port *a, struct sim_port *b)
{
	struct sim_links *links = &engine->net->links;

	if (a->link_layer != b->link_layer)
		return NULL;
	if (!links->given || a->device == b->device)
		return &links->direct;
	return find_given(links, a, b);
}

struct sim_port *sim_fabric_find(struct sim_engine *engine, const union ibv_gid *gid,
				 enum ibv_gid_type type)
{
	for (struct sim_device *device = engine->devices; device; device = device->next)
		for (unsigned int i = 0; i < device->port_count; i++)
			if (!sim_port_is_infiniband(&device->ports[i]) &&
			    sim_port_find_gid(&device->ports[i], gid, type) >= 0)
				return &device->ports[i];
	return NULL;
}

struct sim_port *sim_fabric_find_lid(struct sim_engine *engine, uint16_t lid)
{
	for (struct sim_device *device = engine->devices; device; device = device->next)
		for (unsigned int i = 0; i < device->port_count; i++)
			if (sim_port_is_infiniband(&device->ports[i]) &&
			    device->ports[i].lid == lid)
				return &device->ports[i];
	return NULL;
}

void sim_fabric_find_way(struct sim_engine *engine, struct sim_path *path)
{
	const union ibv_gid *sgid = &path->source->gids[path->sgid_index];
	const struct sim_way_out *way = engine->net->way;
	union ibv_gid dgid;

	if (path->address_epoch == engine->address_epoch)
		return;
	path->address_epoch = engine->address_epoch;
	if (!path->route.infiniband || path->route.has_grh)
		memcpy(path->route.source_gid, sgid->raw, sizeof(path->route.source_gid));
	memcpy(dgid.raw, path->route.dest_gid, sizeof(dgid));
	if (path->route.infiniband) {
		path->route.slid = path->source->lid;
		path->dest = sim_fabric_find_lid(engine, path->route.dlid);
	} else {
		path->route.roce_v1 = sim_path_is_roce_v1(path);
		path->dest =
			sim_fabric_find(engine, &dgid, path->source->gid_types[path->sgid_index]);
		if (path->dest)
			memcpy(path->route.dest_mac, path->dest->mac, sizeof(path->dest->mac));
	}
	path->link = path->dest ? sim_fabric_link(engine, path->source, path->dest) : NULL;
	path->beyond = !path->dest && way && way->reaches(way->arg, path);
}

bool sim_fabric_is_passable(const struct sim_path *path)
{
	if (!sim_port_is_up(path->source))
		return false;
	return path->beyond || (path->dest && sim_port_is_up(path->dest) && path->link);
}
