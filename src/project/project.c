/* SPDX-License-Identifier: MIT */
#include "src/project/project.h"

#include "src/project/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Long enough for any network, short enough that times never overflow. */
#define DELAY_MAX_NS UINT64_C(3600000000000)

/* The section that is being read. */
struct reader {
	struct config config;
	struct vb_project *project;
	struct project_word profiles[PROJECT_PROFILES_MAX];
	int profile; /* of devices that name none; an index of profiles */
};

enum top_key { CLOCK, SEED, TRACE, SUITES, PROFILE, DEVICES, LINKS, TOP_KEYS };
static const char *const top_keys[] = {"clock",	  "seed",    "trace", "suites",
				       "profile", "devices", "links"};

enum device_key {
	DEVICE_NAME,
	DEVICE_PORTS,
	DEVICE_LINK_LAYER,
	DEVICE_MTU,
	DEVICE_ADDRESSES,
	DEVICE_GIDS,
	DEVICE_PKEYS,
	DEVICE_PROFILE,
	DEVICE_QUIRKS,
	DEVICE_KEYS,
};
static const char *const device_keys[] = {"name", "ports", "link_layer", "mtu",	  "addresses",
					  "gids", "pkeys", "profile",	 "quirks"};

enum link_key { LINK_BETWEEN, LINK_DELAY, LINK_RATE, LINK_KEYS };
static const char *const link_keys[] = {"between", "delay", "rate"};

static bool read_gid(const struct config *config, const struct config_value *value,
		     union ibv_gid *gid)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr ipv4;

	if (!config_text(config, value, text, sizeof(text)))
		return false;
	if (inet_pton(AF_INET, text, &ipv4) == 1) {
		uint32_t host = ntohl(ipv4.s_addr);

		if (host >> 24 == 0 || host >> 24 >= 224)
			return config_fail(config, value, "%s is not a host's address", text);
		memset(gid->raw, 0, 10);
		memset(gid->raw + 10, 0xff, 2);
		memcpy(gid->raw + 12, &ipv4, 4);
		return true;
	}
	if (inet_pton(AF_INET6, text, gid->raw) != 1)
		return config_fail(config, value, "'%s' is not an address (IPv4 or IPv6)", text);
	if (gid->raw[0] == 0xff || IN6_IS_ADDR_UNSPECIFIED((struct in6_addr *)gid->raw))
		return config_fail(config, value, "%s is not a host's address", text);
	return true;
}

static bool same_gid(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Returns true for an address that the device with this number has if it is given none. */
static bool is_default_gid(const union ibv_gid *gid, unsigned int number)
{
	union ibv_gid defaults[2];

	vb_sim_default_gids(number, defaults);
	return same_gid(gid, &defaults[0]) || same_gid(gid, &defaults[1]);
}

/* --- devices; device_count does not count yet the device that is being read --- */

static struct vb_sim_device_config *new_device(struct vb_sim_config *sim)
{
	return &sim->devices[sim->device_count];
}

static bool take_gid(const struct config *config, const struct config_value *value,
		     unsigned int index, void *arg)
{
	struct vb_sim_config *sim = arg;
	struct vb_sim_device_config *device = new_device(sim);

	if (!read_gid(config, value, &device->gids[index]))
		return false;
	for (const struct vb_sim_device_config *other = sim->devices; other <= device; other++)
		for (unsigned int i = 0; i < other->gid_count; i++)
			if (same_gid(&other->gids[i], &device->gids[index]))
				return config_fail(config, value,
						   "is already an address of device %s",
						   other->name);
	device->gid_count++;
	return true;
}

static bool take_pkey(const struct config *config, const struct config_value *value,
		      unsigned int index, void *arg)
{
	struct vb_sim_device_config *device = new_device(arg);
	uint64_t pkey;

	if (!config_number(config, value, 1, 0xffff, &pkey))
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

static bool read_device_name(const struct reader *r, const struct config_value *entry,
			     const struct config_value *value, struct vb_sim_device_config *device)
{
	if (!value->node)
		return config_fail(&r->config, entry, "has no name");
	if (!config_name(&r->config, value, device->name, sizeof(device->name)))
		return false;
	if (find_device(&r->project->sim, device->name))
		return config_fail(&r->config, value, "'%s' is already the name of another device",
				   device->name);
	return true;
}

static void set_defaults(struct vb_sim_device_config *device)
{
	snprintf(device->profile, sizeof(device->profile), "%s", vb_sim_profile_name(0));
	device->ports = 1;
	device->link_layer = IBV_LINK_LAYER_ETHERNET;
	device->mtu = IBV_MTU_4096;
}

static bool take_device(const struct config *config, const struct config_value *entry,
			unsigned int index, void *arg)
{
	struct reader *r = arg;
	struct vb_sim_config *sim = &r->project->sim;
	struct vb_sim_device_config *device = new_device(sim);
	struct config_value values[DEVICE_KEYS];
	const struct config_value *gids = &values[DEVICE_ADDRESSES];
	int mtu = IBV_MTU_4096, profile = r->profile;
	uint64_t ports = 1;

	set_defaults(device);
	if (!config_mapping(config, entry, device_keys, DEVICE_KEYS, values) ||
	    !read_device_name(r, entry, &values[DEVICE_NAME], device) ||
	    !config_number(config, &values[DEVICE_PORTS], 1, VB_SIM_PORTS_MAX, &ports) ||
	    !config_word(config, &values[DEVICE_LINK_LAYER], project_link_layers,
			 &device->link_layer) ||
	    !config_word(config, &values[DEVICE_MTU], project_mtus, &mtu))
		return false;
	if (gids->node && values[DEVICE_GIDS].node)
		return config_fail(config, &values[DEVICE_GIDS],
				   "is another name of 'addresses' (give one of the two)");
	if (!gids->node)
		gids = &values[DEVICE_GIDS];
	if (!config_list(config, gids, "addresses", 1, VB_SIM_GIDS_MAX, take_gid, sim) ||
	    !config_list(config, &values[DEVICE_PKEYS], "P_Keys", 1, VB_SIM_PKEYS_MAX, take_pkey,
			 sim) ||
	    !config_word(config, &values[DEVICE_PROFILE], r->profiles, &profile) ||
	    !config_text(config, &values[DEVICE_QUIRKS], device->quirks, sizeof(device->quirks)))
		return false;
	device->ports = ports;
	device->mtu = mtu;
	snprintf(device->profile, sizeof(device->profile), "%s", r->profiles[profile].word);
	sim->device_count++;
	return true;
}

/* A given address must not be one that a device without addresses takes. */
static bool check_default_gids(struct reader *r, const struct config_value *list)
{
	const struct vb_sim_config *sim = &r->project->sim;

	for (unsigned int i = 0; i < sim->device_count; i++)
		for (unsigned int j = 0; j < sim->devices[i].gid_count; j++)
			for (unsigned int k = 0; k < sim->device_count; k++) {
				struct config_value entry = config_entry(&r->config, list, i);

				if (!sim->devices[k].gid_count &&
				    is_default_gid(&sim->devices[i].gids[j], k + 1))
					return config_fail(&r->config, &entry,
							   "has the address that device %s takes "
							   "by default (give that device its own)",
							   sim->devices[k].name);
			}
	return true;
}

static bool read_devices(struct reader *r, const struct config_value *list)
{
	return config_list(&r->config, list, "devices", 1, VB_SIM_DEVICES_MAX, take_device, r) &&
	       check_default_gids(r, list);
}

/* --- links --- */

static bool take_end(const struct config *config, const struct config_value *value,
		     unsigned int index, void *arg)
{
	struct vb_sim_config *sim = arg;
	struct vb_sim_link_config *link = &sim->links[sim->link_count];
	char *end = index ? link->b : link->a;

	if (!config_name(config, value, end, VB_SIM_NAME_MAX))
		return false;
	return find_device(sim, end) || config_fail(config, value, "there is no device '%s'", end);
}

static bool joins(const struct vb_sim_link_config *link, const char *a, const char *b)
{
	return !strcmp(link->a, a) && !strcmp(link->b, b);
}

static bool read_ends(const struct config *config, const struct config_value *list,
		      struct vb_sim_config *sim)
{
	const struct vb_sim_link_config *link = &sim->links[sim->link_count];

	if (!config_list(config, list, "devices", 2, 2, take_end, sim))
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
		      unsigned int index, void *arg)
{
	struct vb_sim_config *sim = arg;
	struct vb_sim_link_config *link = &sim->links[sim->link_count];
	struct config_value values[LINK_KEYS];

	if (!config_mapping(config, entry, link_keys, LINK_KEYS, values))
		return false;
	if (!values[LINK_BETWEEN].node)
		return config_fail(config, entry, "names no devices (between: [a, b])");
	if (!read_ends(config, &values[LINK_BETWEEN], sim) ||
	    !config_duration(config, &values[LINK_DELAY], DELAY_MAX_NS, &link->delay_ns) ||
	    !config_rate(config, &values[LINK_RATE], &link->bits_per_second))
		return false;
	sim->link_count++;
	return true;
}

/* --- the section --- */

static bool take_suite(const struct config *config, const struct config_value *value,
		       unsigned int index, void *arg)
{
	struct vb_project *project = arg;
	struct vb_project_suite *suite = &project->suites[index];

	if (!config_name(config, value, suite->name, sizeof(suite->name)))
		return false;
	suite->line = value->line;
	for (unsigned int i = 0; i < index; i++)
		if (!strcmp(project->suites[i].name, suite->name))
			return config_fail(config, value, "'%s' is given twice", suite->name);
	project->suite_count++;
	return true;
}

static bool read_world(struct reader *r, const struct config_value *values)
{
	struct vb_sim_config *sim = &r->project->sim;
	int clock = VB_SIM_CLOCK_VIRTUAL;
	char path[PATH_MAX];

	if (!config_word(&r->config, &values[CLOCK], project_clocks, &clock) ||
	    !config_number(&r->config, &values[SEED], 0, UINT64_MAX, &sim->seed) ||
	    !config_text(&r->config, &values[TRACE], path, sizeof(path)))
		return false;
	sim->clock = clock;
	sim->seed_given = values[SEED].node;
	sim->trace = values[TRACE].node ? strdup(path) : NULL;
	if (values[TRACE].node && !sim->trace)
		return config_fail(&r->config, &values[TRACE], "no memory");
	return true;
}

static bool read_section(struct reader *r, const struct config_value *section)
{
	struct vb_project *project = r->project;
	struct config_value values[TOP_KEYS];

	if (!config_mapping(&r->config, section, top_keys, TOP_KEYS, values) ||
	    !read_world(r, values) ||
	    !config_word(&r->config, &values[PROFILE], r->profiles, &r->profile) ||
	    !config_list(&r->config, &values[SUITES], "suites", 1, VB_PROJECT_SUITES_MAX,
			 take_suite, project))
		return false;
	if (values[DEVICES].node) {
		if (!read_devices(r, &values[DEVICES]))
			return false;
	} else if (values[PROFILE].node || values[LINKS].node) {
		/* A profile or links without devices mean the default devices. */
		vb_project_add_devices(&project->sim, VB_PROJECT_DEVICES);
		vb_project_set_profile(&project->sim, r->profiles[r->profile].word);
	}
	return config_list(&r->config, &values[LINKS], "links", 1, VB_SIM_LINKS_MAX, take_link,
			   &project->sim);
}

void vb_project_add_devices(struct vb_sim_config *sim, unsigned int count)
{
	if (sim->device_count)
		return;
	for (unsigned int i = 0; i < count; i++) {
		set_defaults(&sim->devices[i]);
		snprintf(sim->devices[i].name, sizeof(sim->devices[i].name), "sim%u", i);
	}
	sim->device_count = count;
}

void vb_project_set_profile(struct vb_sim_config *sim, const char *profile)
{
	for (unsigned int i = 0; i < sim->device_count; i++)
		snprintf(sim->devices[i].profile, sizeof(sim->devices[i].profile), "%s", profile);
}

static bool is_section_name(const yaml_node_t *name)
{
	const char *text;

	if (name->type != YAML_SCALAR_NODE)
		return false;
	text = (const char *)name->data.scalar.value;
	return !strcmp(text, ":verbena") || !strcmp(text, "verbena");
}

static bool read_document(struct reader *r)
{
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

static void syntax_error(const yaml_parser_t *parser, const char *file,
			 struct vb_project_error *error)
{
	size_t line = parser->problem_mark.line + 1;

	if (parser->error == YAML_MEMORY_ERROR)
		snprintf(error->text, sizeof(error->text), "%s: no memory", file);
	else if (parser->error == YAML_READER_ERROR)
		snprintf(error->text, sizeof(error->text), "%s: not a text file: %s at byte %zu",
			 file, parser->problem, parser->problem_offset);
	else
		snprintf(error->text, sizeof(error->text), "%s:%zu: not YAML: %s%s%s", file, line,
			 parser->context ? parser->context : "", parser->context ? ", " : "",
			 parser->problem ? parser->problem : "cannot be read");
}

static bool parse_yaml(struct vb_project *project, const char *text, size_t length_bytes,
		       struct vb_project_error *error)
{
	yaml_document_t document;
	struct reader reader = {
		.config = {&document, project->file, error->text, sizeof(error->text)},
		.project = project,
	};
	yaml_parser_t parser;
	bool valid = false;

	if (!yaml_parser_initialize(&parser)) {
		snprintf(error->text, sizeof(error->text), "%s: no memory", project->file);
		return false;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length_bytes);
	if (yaml_parser_load(&parser, &document)) {
		project_profiles(reader.profiles);
		valid = read_document(&reader);
		yaml_document_delete(&document);
	} else {
		syntax_error(&parser, project->file, error);
	}
	yaml_parser_delete(&parser);
	return valid;
}

static struct vb_project *new_project(const char *file, struct vb_project_error *error)
{
	struct vb_project *project = calloc(1, sizeof(*project));

	if (project && file)
		project->file = strdup(file);
	if (!project || (file && !project->file)) {
		free(project);
		snprintf(error->text, sizeof(error->text), "%s: no memory",
			 file ? file : "project");
		errno = ENOMEM;
		return NULL;
	}
	return project;
}

struct vb_project *vb_project_parse(const char *file, const char *text, size_t length_bytes,
				    struct vb_project_error *error)
{
	struct vb_project *project;

	error->text[0] = '\0';
	project = new_project(file, error);
	if (!project)
		return NULL;
	if (length_bytes > VB_PROJECT_SIZE_MAX)
		snprintf(error->text, sizeof(error->text), "%s: larger than %d bytes", file,
			 VB_PROJECT_SIZE_MAX);
	else if (parse_yaml(project, text, length_bytes, error))
		return project;
	vb_project_free(project);
	errno = EINVAL;
	return NULL;
}

/* Up to one byte more than a project may have; -1 with errno. */
static ssize_t read_file(const char *path, char *text)
{
	size_t length_bytes = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int saved;

	if (fd < 0)
		return -1;
	do {
		got = read(fd, text + length_bytes, VB_PROJECT_SIZE_MAX + 1 - length_bytes);
		if (got > 0)
			length_bytes += got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	saved = errno;
	close(fd);
	errno = saved;
	return got < 0 ? -1 : (ssize_t)length_bytes;
}

struct vb_project *vb_project_load(const char *path, struct vb_project_error *error)
{
	const char *named = path ? path : getenv("VERBENA_PROJECT");
	const char *file = named && *named ? named : VB_PROJECT_FILE;
	struct vb_project *project = NULL;
	char *text = malloc(VB_PROJECT_SIZE_MAX + 1);
	ssize_t length_bytes;
	int saved;

	error->text[0] = '\0';
	if (!text) {
		snprintf(error->text, sizeof(error->text), "%s: no memory", file);
		return NULL;
	}
	length_bytes = read_file(file, text);
	if (length_bytes >= 0)
		project = vb_project_parse(file, text, length_bytes, error);
	else if (errno == ENOENT && file != named)
		project = new_project(NULL, error);
	else
		snprintf(error->text, sizeof(error->text), "%s: %s", file, strerror(errno));
	saved = errno;
	free(text);
	errno = saved;
	return project;
}

void vb_project_free(struct vb_project *project)
{
	if (!project)
		return;
	free((char *)project->sim.trace);
	free(project->file);
	free(project);
}
