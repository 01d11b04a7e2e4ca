/* SPDX-License-Identifier: MIT */
#include "src/project/project.h"

#include "src/project/config.h"
#include "src/project/project_words.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Long enough for any network and short enough that times never overflow. */
#define DELAY_MAX_NS UINT64_C(3600000000000)

/* A section that is being read. */
struct reader {
	struct config config;
	struct vb_project *project;
	int profile; /* of devices that name none; index into project_profiles, or -1 */
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

const struct config_word project_clocks[] = {
	{"virtual", VB_SIM_CLOCK_VIRTUAL},
	{"real", VB_SIM_CLOCK_REAL},
	{NULL, 0},
};

const struct config_word project_link_layers[] = {
	{"ethernet", IBV_LINK_LAYER_ETHERNET},
	{"infiniband", IBV_LINK_LAYER_INFINIBAND},
	{NULL, 0},
};

static const struct config_word mtus[] = {
	{"256", IBV_MTU_256},	{"512", IBV_MTU_512},	{"1024", IBV_MTU_1024},
	{"2048", IBV_MTU_2048}, {"4096", IBV_MTU_4096}, {NULL, 0},
};

/* The simulator's; its own table is not for this layer to see. */
const struct config_word project_profiles[] = {
	{"spec", 0}, {"rxe-6.1", 1}, {"rxe-6.12", 2}, {"mlx5", 3}, {NULL, 0},
};

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
		return config_fail(config, value, "'%s' is no address (IPv4 or IPv6)", text);
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

static bool read_gids(struct reader *r, const struct config_value *list,
		      struct vb_sim_device_config *device)
{
	const struct vb_sim_config *sim = &r->project->sim;
	unsigned int count;

	if (!config_list(&r->config, list, "addresses", 1, VB_SIM_GIDS_MAX, &count))
		return false;
	for (unsigned int i = 0; i < count; i++) {
		struct config_value value = config_entry(&r->config, list, i);

		if (!read_gid(&r->config, &value, &device->gids[i]))
			return false;
		for (const struct vb_sim_device_config *other = sim->devices; other <= device;
		     other++)
			for (unsigned int j = 0; j < other->gid_count; j++)
				if (same_gid(&other->gids[j], &device->gids[i]))
					return config_fail(&r->config, &value,
							   "an address of device %s already",
							   other->name);
		device->gid_count++;
	}
	return true;
}

static bool read_pkeys(struct reader *r, const struct config_value *list,
		       struct vb_sim_device_config *device)
{
	uint64_t pkey;

	if (!config_list(&r->config, list, "P_Keys", 1, VB_SIM_PKEYS_MAX, &device->pkey_count))
		return false;
	for (unsigned int i = 0; i < device->pkey_count; i++) {
		struct config_value value = config_entry(&r->config, list, i);

		if (!config_number(&r->config, &value, 1, 0xffff, &pkey))
			return false;
		if (!(pkey & 0x7fff))
			return config_fail(&r->config, &value,
					   "0x8000 is no partition (its low 15 bits are 0)");
		device->pkeys[i] = pkey;
	}
	return true;
}

static bool read_profile(struct reader *r, const struct config_value *value, int *profile)
{
	return !value->node || config_word(&r->config, value, project_profiles, profile);
}

static struct vb_sim_device_config *find_device(struct vb_sim_config *sim, const char *name)
{
	for (unsigned int i = 0; i < sim->device_count; i++)
		if (!strcmp(sim->devices[i].name, name))
			return &sim->devices[i];
	return NULL;
}

static bool read_device_name(struct reader *r, const struct config_value *entry,
			     const struct config_value *value, struct vb_sim_device_config *device)
{
	if (!value->node)
		return config_fail(&r->config, entry, "has no name");
	if (!config_name(&r->config, value, device->name, sizeof(device->name)))
		return false;
	if (find_device(&r->project->sim, device->name))
		return config_fail(&r->config, value, "'%s' is another device's name already",
				   device->name);
	return true;
}

/* device_count does not count the device yet. */
static bool read_device(struct reader *r, const struct config_value *entry)
{
	struct vb_sim_config *sim = &r->project->sim;
	struct vb_sim_device_config *device = &sim->devices[sim->device_count];
	struct config_value values[DEVICE_KEYS];
	const struct config_value *gids = &values[DEVICE_ADDRESSES];
	int link_layer = IBV_LINK_LAYER_ETHERNET, mtu = IBV_MTU_4096, profile = r->profile;
	uint64_t ports = 1;

	if (!config_mapping(&r->config, entry, device_keys, DEVICE_KEYS, values) ||
	    !read_device_name(r, entry, &values[DEVICE_NAME], device))
		return false;
	if (values[DEVICE_PORTS].node &&
	    !config_number(&r->config, &values[DEVICE_PORTS], 1, VB_SIM_PORTS_MAX, &ports))
		return false;
	if (values[DEVICE_LINK_LAYER].node &&
	    !config_word(&r->config, &values[DEVICE_LINK_LAYER], project_link_layers, &link_layer))
		return false;
	if (values[DEVICE_MTU].node && !config_word(&r->config, &values[DEVICE_MTU], mtus, &mtu))
		return false;
	if (gids->node && values[DEVICE_GIDS].node)
		return config_fail(&r->config, &values[DEVICE_GIDS],
				   "is another name of 'addresses' (give one of the two)");
	if (!gids->node)
		gids = &values[DEVICE_GIDS];
	if ((gids->node && !read_gids(r, gids, device)) ||
	    (values[DEVICE_PKEYS].node && !read_pkeys(r, &values[DEVICE_PKEYS], device)) ||
	    !read_profile(r, &values[DEVICE_PROFILE], &profile))
		return false;
	if (values[DEVICE_QUIRKS].node && !config_text(&r->config, &values[DEVICE_QUIRKS],
						       device->quirks, sizeof(device->quirks)))
		return false;
	device->ports = ports;
	device->link_layer = link_layer;
	device->mtu = mtu;
	snprintf(device->profile, sizeof(device->profile), "%s", project_profiles[profile].word);
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
							   "by default (give that one its own)",
							   sim->devices[k].name);
			}
	return true;
}

static bool read_devices(struct reader *r, const struct config_value *list)
{
	unsigned int count;

	if (!config_list(&r->config, list, "devices", 1, VB_SIM_DEVICES_MAX, &count))
		return false;
	for (unsigned int i = 0; i < count; i++) {
		struct config_value entry = config_entry(&r->config, list, i);

		if (!read_device(r, &entry))
			return false;
	}
	return check_default_gids(r, list);
}

/* With no devices named, the default ones, so that links and the profile can mean them. */
static void default_devices(struct reader *r)
{
	struct vb_sim_config *sim = &r->project->sim;

	for (unsigned int i = 0; i < 2; i++) {
		struct vb_sim_device_config *device = &sim->devices[i];

		snprintf(device->name, sizeof(device->name), "sim%u", i);
		snprintf(device->profile, sizeof(device->profile), "%s",
			 project_profiles[r->profile].word);
		device->ports = 1;
		device->link_layer = IBV_LINK_LAYER_ETHERNET;
		device->mtu = IBV_MTU_4096;
	}
	sim->device_count = 2;
}

static bool read_ends(struct reader *r, const struct config_value *list,
		      struct vb_sim_link_config *link)
{
	struct vb_sim_config *sim = &r->project->sim;
	char *const ends[] = {link->a, link->b};
	unsigned int count;

	if (!config_list(&r->config, list, "devices", 2, 2, &count))
		return false;
	for (unsigned int i = 0; i < 2; i++) {
		struct config_value value = config_entry(&r->config, list, i);

		if (!config_name(&r->config, &value, ends[i], VB_SIM_NAME_MAX))
			return false;
		if (!find_device(sim, ends[i]))
			return config_fail(&r->config, &value, "there is no device '%s'", ends[i]);
	}
	if (!strcmp(link->a, link->b))
		return config_fail(&r->config, list,
				   "joins %s to itself (it reaches itself always)", link->a);
	for (unsigned int i = 0; i < sim->link_count; i++) {
		const struct vb_sim_link_config *other = &sim->links[i];

		if ((!strcmp(other->a, link->a) && !strcmp(other->b, link->b)) ||
		    (!strcmp(other->a, link->b) && !strcmp(other->b, link->a)))
			return config_fail(&r->config, list, "%s and %s are joined already",
					   link->a, link->b);
	}
	return true;
}

static bool same_link_layer(struct reader *r, const struct config_value *entry,
			    const struct vb_sim_link_config *link)
{
	struct vb_sim_config *sim = &r->project->sim;

	if (find_device(sim, link->a)->link_layer == find_device(sim, link->b)->link_layer)
		return true;
	return config_fail(&r->config, entry, "joins %s and %s, whose link layers differ", link->a,
			   link->b);
}

static bool read_link(struct reader *r, const struct config_value *entry)
{
	struct vb_sim_link_config *link = &r->project->sim.links[r->project->sim.link_count];
	struct config_value values[LINK_KEYS];

	if (!config_mapping(&r->config, entry, link_keys, LINK_KEYS, values))
		return false;
	if (!values[LINK_BETWEEN].node)
		return config_fail(&r->config, entry,
				   "does not say between which (between: [a, b])");
	if (!read_ends(r, &values[LINK_BETWEEN], link) ||
	    !same_link_layer(r, &values[LINK_BETWEEN], link))
		return false;
	if (values[LINK_DELAY].node &&
	    !config_duration(&r->config, &values[LINK_DELAY], DELAY_MAX_NS, &link->delay_ns))
		return false;
	if (values[LINK_RATE].node &&
	    !config_rate(&r->config, &values[LINK_RATE], &link->bits_per_second))
		return false;
	r->project->sim.link_count++;
	return true;
}

static bool read_links(struct reader *r, const struct config_value *list)
{
	unsigned int count;

	if (!config_list(&r->config, list, "links", 1, VB_SIM_LINKS_MAX, &count))
		return false;
	for (unsigned int i = 0; i < count; i++) {
		struct config_value entry = config_entry(&r->config, list, i);

		if (!read_link(r, &entry))
			return false;
	}
	return true;
}

static bool read_suites(struct reader *r, const struct config_value *list)
{
	struct vb_project *project = r->project;
	unsigned int count;

	if (!config_list(&r->config, list, "suites", 1, VB_PROJECT_SUITES_MAX, &count))
		return false;
	for (unsigned int i = 0; i < count; i++) {
		struct config_value value = config_entry(&r->config, list, i);
		struct vb_project_suite *suite = &project->suites[i];

		if (!config_name(&r->config, &value, suite->name, sizeof(suite->name)))
			return false;
		suite->line = value.line;
		for (unsigned int j = 0; j < i; j++)
			if (!strcmp(project->suites[j].name, suite->name))
				return config_fail(&r->config, &value, "'%s' is given twice",
						   suite->name);
		project->suite_count++;
	}
	return true;
}

static bool read_world(struct reader *r, const struct config_value *values)
{
	struct vb_sim_config *sim = &r->project->sim;
	int clock = VB_SIM_CLOCK_VIRTUAL;

	if (values[CLOCK].node && !config_word(&r->config, &values[CLOCK], project_clocks, &clock))
		return false;
	sim->clock = clock;
	if (values[SEED].node) {
		if (!config_number(&r->config, &values[SEED], 0, UINT64_MAX, &sim->seed))
			return false;
		sim->seed_given = true;
	}
	if (values[TRACE].node) {
		char path[PATH_MAX];

		if (!config_text(&r->config, &values[TRACE], path, sizeof(path)))
			return false;
		sim->trace = strdup(path);
		if (!sim->trace)
			return config_fail(&r->config, &values[TRACE], "no memory");
	}
	return true;
}

static bool read_section(struct reader *r, const struct config_value *section)
{
	struct config_value values[TOP_KEYS];

	if (!config_mapping(&r->config, section, top_keys, TOP_KEYS, values) ||
	    !read_world(r, values) || !read_profile(r, &values[PROFILE], &r->profile))
		return false;
	if (values[SUITES].node && !read_suites(r, &values[SUITES]))
		return false;
	if (values[DEVICES].node) {
		if (!read_devices(r, &values[DEVICES]))
			return false;
	} else if (values[PROFILE].node || values[LINKS].node) {
		default_devices(r);
	}
	return !values[LINKS].node || read_links(r, &values[LINKS]);
}

static bool is_section_name(const yaml_node_t *name)
{
	const char *text;

	if (name->type != YAML_SCALAR_NODE)
		return false;
	text = (const char *)name->data.scalar.value;
	return !strcmp(text, ":verbena") || !strcmp(text, "verbena");
}

static bool is_empty(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE &&
	       node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!node->data.scalar.length || !strcmp((char *)node->data.scalar.value, "~") ||
		!strcasecmp((char *)node->data.scalar.value, "null"));
}

static bool read_document(struct reader *r)
{
	yaml_node_t *root = yaml_document_get_root_node(r->config.document);
	struct config_value section = {.key = CONFIG_TOP};

	if (!root || is_empty(root))
		return true;
	section.line = root->start_mark.line + 1;
	if (root->type != YAML_MAPPING_NODE)
		return config_fail(
			&r->config, &section,
			"the file is no mapping (sections such as :verbena: are wanted)");
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
	return !section.node || is_empty(section.node) || read_section(r, &section);
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
