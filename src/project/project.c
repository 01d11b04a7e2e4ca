/* SPDX-License-Identifier: MIT */
#include "src/project/project.h"

#include "src/project/section.h"
#include "src/project/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const char *vb_project_clock_name(unsigned int index)
{
	static const char *const names[] = {"virtual", "real", NULL};

	return names[index];
}

const char *vb_project_link_layer_name(unsigned int index)
{
	static const char *const names[] = {"ethernet", "infiniband", NULL};

	return names[index];
}

int vb_project_link_layer(unsigned int index)
{
	return index ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
}

void vb_project_add_devices(struct vb_sim_config *sim, unsigned int count)
{
	if (sim->device_count)
		return;
	for (unsigned int i = 0; i < count; i++) {
		struct vb_sim_device_config *device = &sim->devices[i];

		device->ports = 1;
		device->link_layer = IBV_LINK_LAYER_ETHERNET;
		device->mtu = IBV_MTU_4096;
		snprintf(device->name, sizeof(device->name), "sim%u", i);
	}
	sim->device_count = count;
	vb_project_set_profile(sim, vb_sim_profile_name(0));
}

void vb_project_set_profile(struct vb_sim_config *sim, const char *profile)
{
	for (unsigned int i = 0; i < sim->device_count; i++)
		snprintf(sim->devices[i].profile, sizeof(sim->devices[i].profile), "%s", profile);
}

bool vb_project_set_wire(struct vb_project *project, const char *name, const char *text,
			 struct vb_project_error *error)
{
	struct vb_project_wire wire;
	char message[256];
	bool good = wire_read(text, &wire, message, sizeof(message));

	if (good && wire.address[0] && project->sim.device_count > 1) {
		snprintf(
			message, sizeof(message),
			"'%s' is the address of one device, and there are %u (give each device its "
			"own wire in project.yml, or take one device)",
			text, project->sim.device_count);
		good = false;
	}
	if (!good) {
		snprintf(error->text, sizeof(error->text), "%s: %s", name, message);
		errno = EINVAL;
		return false;
	}
	for (unsigned int i = 0; i < project->sim.device_count; i++) {
		wire_give(&wire, &project->sim.devices[i]);
		project->wire_given[i] = true;
	}
	return true;
}

bool vb_project_set_world(struct vb_project *project, const char *name, const char *text,
			  struct vb_project_error *error)
{
	if (wire_is_world(text)) {
		snprintf(project->sim.world, sizeof(project->sim.world), "%s", text);
		return true;
	}
	snprintf(error->text, sizeof(error->text),
		 "%s: '%.80s' is not a name (1 to %d letters, digits, '_', '-' and '.')", name,
		 text, VB_SIM_NAME_MAX - 1);
	errno = EINVAL;
	return false;
}

void vb_project_new_world(char name[VB_SIM_NAME_MAX])
{
	uint64_t number = 0;

	(void)!getrandom(&number, sizeof(number), 0);
	snprintf(name, VB_SIM_NAME_MAX, VB_SIM_WORLD_NEW "-%016" PRIx64, number);
}

const struct vb_sim_device_config *vb_project_wired(const struct vb_project *project)
{
	for (unsigned int i = 0; i < project->sim.device_count; i++)
		if (project->sim.devices[i].wire != VB_SIM_WIRE_MEMORY)
			return &project->sim.devices[i];
	return NULL;
}

static void syntax_error(const yaml_parser_t *parser, const char *file,
			 struct vb_project_error *error)
{
	size_t line = parser->problem_mark.line + 1;

	if (parser->error == YAML_READER_ERROR)
		snprintf(error->text, sizeof(error->text), "%s: not a text file: %s at byte %zu",
			 file, parser->problem, parser->problem_offset);
	else
		snprintf(error->text, sizeof(error->text), "%s:%zu: not YAML: %s%s%s", file, line,
			 parser->context ? parser->context : "", parser->context ? ", " : "",
			 parser->problem ? parser->problem : "cannot be read");
}

static int no_memory(const char *file, struct vb_project_error *error)
{
	snprintf(error->text, sizeof(error->text), "%s: no memory", file);
	return ENOMEM;
}

/* Returns true if libyaml has failed for lack of memory. Its loader sets no error if it cannot copy a tag or an
 * anchor. */
static bool lacks_memory(const yaml_parser_t *parser)
{
	return parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR;
}

/* Returns 0, EINVAL or ENOMEM, with a message. */
static int parse_yaml(struct vb_project *project, const char *file, const char *text,
		      size_t length_bytes, struct vb_project_error *error)
{
	yaml_document_t document;
	const struct config config = {&document, file, error->text, sizeof(error->text)};
	yaml_parser_t parser;
	int err = EINVAL;

	if (!yaml_parser_initialize(&parser))
		return no_memory(file, error);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length_bytes);
	if (yaml_parser_load(&parser, &document)) {
		err = section_read(project, &config) ? 0 : EINVAL;
		yaml_document_delete(&document);
	} else if (lacks_memory(&parser)) {
		err = no_memory(file, error);
	} else {
		syntax_error(&parser, file, error);
	}
	yaml_parser_delete(&parser);
	return err;
}

/* Returns an empty project, or NULL with errno and a message. */
static struct vb_project *new_project(const char *file, struct vb_project_error *error)
{
	struct vb_project *project = calloc(1, sizeof(*project));

	error->text[0] = '\0';
	if (project)
		snprintf(project->file, sizeof(project->file), "%s", file);
	else
		errno = no_memory(file, error);
	return project;
}

struct vb_project *vb_project_parse(const char *file, const char *text, size_t length_bytes,
				    struct vb_project_error *error)
{
	struct vb_project *project = new_project(file, error);
	int err = EINVAL;

	if (!project)
		return NULL;
	if (length_bytes > VB_PROJECT_SIZE_MAX)
		snprintf(error->text, sizeof(error->text), "%s: larger than %d bytes", file,
			 VB_PROJECT_SIZE_MAX);
	else
		err = parse_yaml(project, file, text, length_bytes, error);
	if (!err)
		return project;
	vb_project_free(project);
	errno = err;
	return NULL;
}

/* Reads at most VB_PROJECT_SIZE_MAX + 1 bytes, so that the caller sees if there are too many. Returns 0 or an
 * errno value. */
static int read_file(const char *path, char *text, size_t *length_bytes)
{
	FILE *file = fopen(path, "re");
	int error;

	if (!file)
		return errno;
	*length_bytes = fread(text, 1, VB_PROJECT_SIZE_MAX + 1, file);
	error = ferror(file) ? errno : 0;
	fclose(file);
	return error;
}

struct vb_project *vb_project_load(const char *path, struct vb_project_error *error)
{
	const char *named = path ? path : getenv("VERBENA_PROJECT");
	const char *file = named && *named ? named : VB_PROJECT_FILE;
	struct vb_project *project = NULL;
	char *text = malloc(VB_PROJECT_SIZE_MAX + 1);
	size_t length_bytes = 0;
	int failed = text ? read_file(file, text, &length_bytes) : ENOMEM;

	if (!failed) {
		project = vb_project_parse(file, text, length_bytes, error);
		failed = errno;
	} else if (failed == ENOENT && file != named) {
		project = new_project("", error);
	} else {
		snprintf(error->text, sizeof(error->text), "%s: %s", file, strerror(failed));
	}
	free(text);
	errno = failed;
	return project;
}

void vb_project_free(struct vb_project *project)
{
	free(project);
}
