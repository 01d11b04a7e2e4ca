/* SPDX-License-Identifier: MIT */
#include "src/project/section.h"

#include "src/base/count.h"
#include "src/project/failure.h"
#include "src/project/fault_rule.h"
#include "src/project/incident.h"
#include "src/project/wire.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* An hour: more than any network has, and sums of it do not overflow. */
#define DELAY_MAX_NS UINT64_C(3600000000000)

/* The section that is being read. */
struct reader {
	struct config config;
	struct vb_project *project;
	int profile; /* for devices that name none: an index of vb_sim_profile_name() */
	struct vb_project_wire wire; /* for devices that name none */
};

/* Returns the word for IBV_MTU_256 + index. */
static const char *mtu_name(unsigned int index)
{
	static const char *const names[] = {"256", "512", "1024", "2048", "4096", NULL};

	return names[index];
}

static bool read_gid(const struct config *config, const struct config_value *value,
		     union ibv_gid *gid)
{
	static const union ibv_gid mapped = {.raw = {[10] = 0xff, [11] = 0xff}};
	const uint8_t *ipv4 = gid->raw + 12;
	char text[INET6_ADDRSTRLEN];
	bool is_host;

	*gid = mapped;
	if (!config_text(config, value, &(struct config_key){.into = text, .max = sizeof(text)}))
		return false;
	if (inet_pton(AF_INET, text, gid->raw + 12) == 1)
		is_host = ipv4[0] && ipv4[0] < 224;
	else if (inet_pton(AF_INET6, text, gid->raw) == 1)
		is_host = gid->raw[0] != 0xff &&
			  !IN6_IS_ADDR_UNSPECIFIED((struct in6_addr *)gid->raw);
	else
		return config_fail(config, value, "'%s' is not an address (IPv4 or IPv6)", text);
	return is_host || config_fail(config, value, "%s is not a host's address", text);
}

/* --- devices; while a device is read, device_count is its index --- */

static struct vb_sim_device_config *new_device(struct vb_sim_config *sim)
{
	return &sim->devices[sim->device_count];
}

/* Returns the index of the device, among the first @count, that has the address; -1 if none has. */
static int owner_of(const struct vb_sim_config *sim, unsigned int count, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < sim->devices[i].gid_count; j++)
			if (!memcmp(&sim->devices[i].gids[j], gid, sizeof(*gid)))
				return (int)i;
	return -1;
}

static bool take_gid(const struct config *config, const struct config_value *value,
		     unsigned int index, void *into)
{
	struct vb_sim_config *sim = into;
	struct vb_sim_device_config *device = new_device(sim);
	int owner;

	if (!read_gid(config, value, &device->gids[index]))
		return false;
	owner = owner_of(sim, sim->device_count + 1, &device->gids[index]);
	if (owner >= 0)
		return config_fail(config, value, "is already an address of device %s",
				   sim->devices[owner].name);
	device->gid_count++;
	return true;
}

static bool read_gids(const struct config *config, const struct config_value *list,
		      const struct config_key *key)
{
	if (new_device(key->into)->gid_count)
		return config_fail(config, list,
				   "is another name of 'addresses' (give one of the two)");
	return config_list(config, list, key);
}

static bool take_pkey(const struct config *config, const struct config_value *value,
		      unsigned int index, void *into)
{
	struct vb_sim_device_config *device = into;
	uint64_t pkey;

	if (!config_number(config, value,
			   &(struct config_key){.into = &pkey, .min = 1, .max = 0xffff}))
		return false;
	if (!(pkey & 0x7fff))
		return config_fail(config, value,
				   "0x8000 is not a partition (its low 15 bits are 0)");
	device->pkeys[index] = pkey;
	device->pkey_count++;
	return true;
}

static struct vb_sim_device_config *find_device(struct vb_sim_config *sim, const char *name)
{
	for (unsigned int i = 0; i < sim->device_count; i++)
		if (!strcmp(sim->devices[i].name, name))
			return &sim->devices[i];
	return NULL;
}

static bool take_device(const struct config *config, const struct config_value *entry,
			unsigned int index, void *into)
{
	struct reader *r = into;
	struct vb_sim_config *sim = &r->project->sim;
	struct vb_sim_device_config *device = new_device(sim);
	struct config_value name;
	int link_layer = 0, mtu = IBV_MTU_4096 - IBV_MTU_256, profile = r->profile;
	struct vb_project_wire wire = r->wire;
	uint64_t ports = 1;
	const struct config_key keys[] = {
		{"name", config_name, device->name, .max = VB_SIM_NAME_MAX, .value = &name},
		{"ports", config_number, &ports, 1, VB_SIM_PORTS_MAX},
		{"link_layer", config_word, &link_layer, .words = vb_project_link_layer_name},
		{"mtu", config_word, &mtu, .words = mtu_name},
		{"addresses", config_list, sim, 1, VB_SIM_GIDS_MAX, .entry = take_gid,
		 .entries = "addresses"},
		{"gids", read_gids, sim, 1, VB_SIM_GIDS_MAX, .entry = take_gid,
		 .entries = "addresses"},
		{"pkeys", config_list, device, 1, VB_SIM_PKEYS_MAX, .entry = take_pkey,
		 .entries = "P_Keys"},
		{"profile", config_word, &profile, .words = vb_sim_profile_name},
		{"quirks", config_text, device->quirks, .max = VB_SIM_QUIRKS_TEXT},
		{"wire", wire_config, &wire},
	};

	if (!config_mapping(config, entry, keys, COUNT(keys)))
		return false;
	if (!name.node)
		return config_fail(config, entry, "has no name");
	if (find_device(sim, device->name))
		return config_fail(config, &name, "'%s' is already the name of another device",
				   device->name);
	device->ports = ports;
	device->link_layer = vb_project_link_layer(link_layer);
	device->mtu = IBV_MTU_256 + mtu;
	snprintf(device->profile, sizeof(device->profile), "%s", vb_sim_profile_name(profile));
	wire_give(&wire, device);
	r->project->wire_given[sim->device_count] = wire.given;
	sim->device_count++;
	return true;
}

/* Refuses a given address that a device without `addresses` has by default. */
static bool check_default_gids(const struct reader *r, const struct config_value *list)
{
	const struct vb_sim_config *sim = &r->project->sim;

	for (unsigned int i = 0; i < 2 * sim->device_count; i++) {
		const struct vb_sim_device_config *device = &sim->devices[i / 2];
		struct config_value entry;
		union ibv_gid gids[2];
		int owner;

		vb_sim_default_gids(i / 2 + 1, gids);
		owner = device->gid_count ? -1 : owner_of(sim, sim->device_count, &gids[i % 2]);
		if (owner < 0)
			continue;
		entry = config_entry(&r->config, list, (unsigned int)owner);
		return config_fail(&r->config, &entry,
				   "has the address that device %s takes by default (give that "
				   "device its own)",
				   device->name);
	}
	return true;
}

/* --- links --- */

static bool take_end(const struct config *config, const struct config_value *value,
		     unsigned int index, void *into)
{
	struct vb_sim_config *sim = into;
	struct vb_sim_link_config *link = &sim->links[sim->link_count];
	char *end = index ? link->b : link->a;
	const struct config_key key = {.into = end, .max = VB_SIM_NAME_MAX};

	return config_name(config, value, &key) &&
	       (find_device(sim, end) ||
		config_fail(config, value, "there is no device '%s'", end));
}

static bool joins(const struct vb_sim_link_config *link, const char *a, const char *b)
{
	return !strcmp(link->a, a) && !strcmp(link->b, b);
}

static bool read_ends(const struct config *config, const struct config_value *list,
		      const struct config_key *key)
{
	struct vb_sim_config *sim = key->into;
	const struct vb_sim_link_config *link = &sim->links[sim->link_count];

	if (!config_list(config, list, key))
		return false;
	if (!strcmp(link->a, link->b))
		return config_fail(config, list,
				   "joins %s to itself (a device always reaches itself)", link->a);
	for (unsigned int i = 0; i < sim->link_count; i++)
		if (joins(&sim->links[i], link->a, link->b) ||
		    joins(&sim->links[i], link->b, link->a))
			return config_fail(config, list, "%s and %s are already joined", link->a,
					   link->b);
	if (find_device(sim, link->a)->link_layer != find_device(sim, link->b)->link_layer)
		return config_fail(config, list, "joins %s and %s, whose link layers differ",
				   link->a, link->b);
	return true;
}

static bool take_link(const struct config *config, const struct config_value *entry,
		      unsigned int index, void *into)
{
	struct vb_sim_config *sim = &((struct reader *)into)->project->sim;
	struct vb_sim_link_config *link = &sim->links[sim->link_count];
	struct config_value between;
	const struct config_key keys[] = {
		{"between", read_ends, sim, 2, 2, .entry = take_end, .entries = "devices",
		 .value = &between},
		{"delay", config_duration, &link->delay_ns, .max = DELAY_MAX_NS},
		{"rate", config_rate, &link->bits_per_second},
	};

	if (!config_mapping(config, entry, keys, COUNT(keys)))
		return false;
	if (!between.node)
		return config_fail(config, entry, "names no devices (between: [a, b])");
	sim->link_count++;
	return true;
}

/* --- the section --- */

static bool take_suite(const struct config *config, const struct config_value *value,
		       unsigned int index, void *into)
{
	struct vb_project *project = into;
	struct vb_project_suite *suite = &project->suites[index];
	const struct config_key key = {.into = suite->name, .max = sizeof(suite->name)};

	if (!config_name(config, value, &key))
		return false;
	suite->line = value->line;
	for (unsigned int i = 0; i < index; i++)
		if (!strcmp(project->suites[i].name, suite->name))
			return config_fail(config, value, "'%s' is given twice", suite->name);
	project->suite_count++;
	return true;
}

/* Adds the default devices if the file lists none: its profile, links, faults and events are then theirs. */
static void add_default_devices(struct reader *r)
{
	if (r->project->sim.device_count)
		return;
	vb_project_add_devices(&r->project->sim, VB_PROJECT_DEVICES);
	vb_project_set_profile(&r->project->sim, vb_sim_profile_name(r->profile));
	for (unsigned int i = 0; i < r->project->sim.device_count; i++) {
		wire_give(&r->wire, &r->project->sim.devices[i]);
		r->project->wire_given[i] = r->wire.given;
	}
}

static bool take_fault(const struct config *config, const struct config_value *entry,
		       unsigned int index, void *into)
{
	return fault_rule_take(config, entry, index, ((struct reader *)into)->project);
}

static bool take_event(const struct config *config, const struct config_value *entry,
		       unsigned int index, void *into)
{
	return incident_take(config, entry, index, ((struct reader *)into)->project);
}

/* Reads a list whose entries name devices; key->into is the struct reader. */
static bool read_about_devices(const struct config *config, const struct config_value *list,
			       const struct config_key *key)
{
	add_default_devices(key->into);
	return config_list(config, list, key);
}

static bool read_devices(const struct config *config, const struct config_value *list,
			 const struct config_key *key)
{
	return config_list(config, list, key) && check_default_gids(key->into, list);
}

/* Refuses a wire of the section that gives two devices one address. */
static bool check_wire(const struct reader *r, const struct config_value *wire)
{
	const struct vb_sim_config *sim = &r->project->sim;
	unsigned int users = 0;

	for (unsigned int i = 0; i < sim->device_count; i++)
		users += sim->devices[i].wire == VB_SIM_WIRE_UDP &&
			 !strcmp(sim->devices[i].address, r->wire.address);
	return !r->wire.address[0] || users < 2 ||
	       config_fail(&r->config, wire,
			   "gives %u devices one address (give each device its own wire)", users);
}

/* key->into is a struct vb_limit. */
static bool read_limit(const struct config *config, const struct config_value *value,
		       const struct config_key *key)
{
	char text[32];

	return config_text(config, value,
			   &(struct config_key){.into = text, .max = sizeof(text)}) &&
	       (vb_limit_read(text, key->into) ||
		config_fail(config, value, "'%s' is not understood (" VB_LIMIT_ALLOWED ")", text));
}

static bool read_section(struct reader *r, const struct config_value *section)
{
	struct vb_project *project = r->project;
	struct vb_sim_config *sim = &project->sim;
	struct config_value seed, profile, wire;
	struct vb_limit trace_limit = {0};
	int clock = VB_SIM_CLOCK_VIRTUAL;
	const struct config_key keys[] = {
		{"clock", config_word, &clock, .words = vb_project_clock_name},
		{"seed", config_number, &sim->seed, .max = UINT64_MAX, .value = &seed},
		{"trace", config_text, project->trace, .max = PATH_MAX},
		{"trace_limit", read_limit, &trace_limit},
		{"log", config_text, project->log, .max = PATH_MAX},
		{"log_limit", read_limit, &project->log_limit},
		{"suites", config_list, project, 1, VB_PROJECT_SUITES_MAX, .entry = take_suite,
		 .entries = "suites"},
		{"profile", config_word, &r->profile, .words = vb_sim_profile_name,
		 .value = &profile},
		{"wire", wire_config, &r->wire, .value = &wire},
		{"world", config_name, sim->world, .max = VB_SIM_NAME_MAX},
		{"devices", read_devices, r, 1, VB_SIM_DEVICES_MAX, .entry = take_device,
		 .entries = "devices"},
		{"links", read_about_devices, r, 1, VB_SIM_LINKS_MAX, .entry = take_link,
		 .entries = "links"},
		{"faults", read_about_devices, r, 1, VB_SIM_FAULTS_MAX, .entry = take_fault,
		 .entries = "rules"},
		{"failures", config_list, &project->failures, 1, VB_FAIL_RULES_MAX,
		 .entry = failure_take, .entries = "rules"},
		{"events", read_about_devices, r, 1, VB_SIM_EVENTS_MAX, .entry = take_event,
		 .entries = "events"},
	};

	if (!config_mapping(&r->config, section, keys, COUNT(keys)))
		return false;
	if (profile.node || wire.node)
		add_default_devices(r);
	if (wire.node && !check_wire(r, &wire))
		return false;
	sim->clock = clock;
	sim->seed_given = seed.node;
	sim->trace = project->trace[0] ? project->trace : NULL;
	sim->trace_bytes_max = trace_limit.bytes_max;
	sim->trace_packets_max = trace_limit.count_max;
	return true;
}

/* --- the document --- */

static bool is_section_name(const yaml_node_t *name)
{
	const char *text;

	if (name->type != YAML_SCALAR_NODE)
		return false;
	text = (const char *)name->data.scalar.value;
	return !strcmp(text, ":verbena") || !strcmp(text, "verbena");
}

bool section_read(struct vb_project *project, const struct config *config)
{
	struct reader reader = {.config = *config, .project = project}, *r = &reader;
	yaml_node_t *root = yaml_document_get_root_node(r->config.document);
	struct config_value section = {.key = CONFIG_TOP};

	if (!root || config_is_null(root))
		return true;
	section.line = root->start_mark.line + 1;
	if (root->type != YAML_MAPPING_NODE)
		return config_fail(
			&r->config, &section,
			"the file is not a mapping (sections such as :verbena: are wanted)");
	for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
	     pair < root->data.mapping.pairs.top; pair++) {
		yaml_node_t *name = yaml_document_get_node(r->config.document, pair->key);
		unsigned int line = name->start_mark.line + 1;

		if (!is_section_name(name))
			continue;
		if (section.node) {
			unsigned int first = section.line;

			section.line = line;
			return config_fail(&r->config, &section, "given twice (first in line %u)",
					   first);
		}
		section.node = yaml_document_get_node(r->config.document, pair->value);
		section.line = line;
	}
	return !section.node || config_is_null(section.node) || read_section(r, &section);
}
