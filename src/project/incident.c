/* SPDX-License-Identifier: MIT */
#include "src/project/incident.h"

#include "src/base/count.h"
#include "src/base/number.h"
#include "src/project/setting.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define HOUR_NS	  UINT64_C(3600000000000)
#define INDEX_MAX 63 /* of a GID */

/* Reads a port such as "sim0/1". */
static bool read_port(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_sim_event *event = setting->into;
	const char *slash = strchr(value, '/');
	char device[VB_SIM_NAME_MAX];
	uint64_t port = 0;
	unsigned int ports;
	int index;

	if (!slash || slash - value >= VB_SIM_NAME_MAX)
		return setting_fail(setting, "'%s' is no port (a device, '/' and a number: sim0/1)",
				    value);
	snprintf(device, sizeof(device), "%.*s", (int)(slash - value), value);
	index = setting_find_device(setting, device);
	if (index < 0)
		return false;
	ports = setting->sim->devices[index].ports;
	if (vb_number_read(slash + 1, 1, ports, &port) != VB_NUMBER_GOOD)
		return setting_fail(setting, "device %s has no port '%s' (1 to %u)", device,
				    slash + 1, ports);
	event->device = setting->sim->devices[index].name;
	event->port_num = (unsigned int)port;
	return true;
}

enum { STATE_DOWN, STATE_UP, STATE_FATAL };

static const char *state_name(unsigned int index)
{
	static const char *const names[] = {
		[STATE_DOWN] = "down", [STATE_UP] = "up", [STATE_FATAL] = "fatal", NULL};

	return names[index];
}

static bool read_state(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_sim_event *event = setting->into;
	unsigned int state;
	struct setting word = {.into = &state};

	if (!setting_word(&word, &(struct setting_key){.words = state_name}, value))
		return setting_fail(setting, "%s", word.error);
	event->kind = state == STATE_FATAL ? VB_SIM_AT_KILL_DEVICE : VB_SIM_AT_PORT_STATE;
	event->up = state == STATE_UP;
	return true;
}

static bool read_number16(struct setting *setting, const char *value, uint16_t *result)
{
	uint64_t read = 0;
	struct setting number = {.into = &read};

	if (!setting_number(&number, &(struct setting_key){.max = UINT16_MAX}, value))
		return setting_fail(setting, "%s", number.error);
	*result = (uint16_t)read;
	return true;
}

static bool read_lid(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_sim_event *event = setting->into;

	event->kind = VB_SIM_AT_LID;
	return read_number16(setting, value, &event->lid);
}

static bool read_pkey(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_sim_event *event = setting->into;

	event->kind = VB_SIM_AT_PKEY;
	return read_number16(setting, value, &event->pkey);
}

static bool read_gid(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_sim_event *event = setting->into;

	event->kind = VB_SIM_AT_GID;
	memset(event->gid.raw + 10, 0xff, 2);
	return inet_pton(AF_INET, value, event->gid.raw + 12) == 1 ||
	       inet_pton(AF_INET6, value, event->gid.raw) == 1 ||
	       setting_fail(setting, "'%s' is not an address (IPv4 or IPv6)", value);
}

static const char *type_name(unsigned int index)
{
	static const char *const names[] = {"client_reregister", "sm_change", NULL};

	return names[index];
}

static bool read_type(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_sim_event *event = setting->into;
	unsigned int type;
	struct setting word = {.into = &type};

	if (!setting_word(&word, &(struct setting_key){.words = type_name}, value))
		return setting_fail(setting, "%s", word.error);
	event->kind = VB_SIM_AT_PORT_EVENT;
	event->type = type ? IBV_EVENT_SM_CHANGE : IBV_EVENT_CLIENT_REREGISTER;
	return true;
}

#define EVENT(member) offsetof(struct vb_sim_event, member)

static const struct setting_key event_keys[] = {
	{"at", setting_duration, EVENT(at_ns), 0, HOUR_NS},
	{"port", read_port},
	{"device", setting_device, EVENT(device)},
	{"state", read_state},
	{"lid", read_lid},
	{"gid", read_gid},
	{"pkey", read_pkey},
	{"index", setting_number32, EVENT(index), 0, INDEX_MAX},
	{"event", read_type},
};

static bool check_event(struct setting *setting);

static const struct setting_table event_table = {event_keys, COUNT(event_keys), NULL, check_event};

/* Checks the keys `port` and `device`: state=fatal needs a device, each other event needs a port. */
static bool check_target(struct setting *setting)
{
	const bool fatal = ((struct vb_sim_event *)setting->into)->kind == VB_SIM_AT_KILL_DEVICE;
	const bool port = setting_given(setting, &event_table, "port");
	const bool device = setting_given(setting, &event_table, "device");

	if (fatal && port)
		return setting_fail(setting,
				    "port: state=fatal ends a whole device (write device=NAME)");
	if (fatal && !device)
		return setting_fail(setting, "device: is missing (state=fatal ends a device)");
	if (!fatal && device)
		return setting_fail(setting, "device: only state=fatal happens to a whole device "
					     "(write port=NAME/NUMBER)");
	return fatal || port || setting_fail(setting, "port: is missing (write port=NAME/NUMBER)");
}

/* Checks that the port has a P_Key at the index. Without `pkeys` in its configuration a device has one P_Key. */
static bool check_pkey_index(struct setting *setting)
{
	const struct vb_sim_event *event = setting->into;
	unsigned int last = 0;

	for (unsigned int i = 0; i < setting->sim->device_count; i++)
		if (event->device == setting->sim->devices[i].name &&
		    setting->sim->devices[i].pkey_count)
			last = setting->sim->devices[i].pkey_count - 1;
	return event->kind != VB_SIM_AT_PKEY || event->index <= last ||
	       setting_fail(setting, "index: %u is out of range (0 to %u, the P_Keys of %s)",
			    event->index, last, event->device);
}

static bool check_event(struct setting *setting)
{
	static const char *const changes[] = {"state", "lid", "gid", "pkey", "event"};
	const struct vb_sim_event *event = setting->into;
	unsigned int count = 0;

	for (unsigned int i = 0; i < COUNT(changes); i++)
		count += setting_given(setting, &event_table, changes[i]);
	if (count != 1)
		return setting_fail(setting,
				    "%u things happen (give one of: state, lid, gid, pkey, event)",
				    count);
	if (!setting_given(setting, &event_table, "at"))
		return setting_fail(setting,
				    "at: is missing (the time from the world's beginning)");
	if (setting_given(setting, &event_table, "index") && event->kind != VB_SIM_AT_GID &&
	    event->kind != VB_SIM_AT_PKEY)
		return setting_fail(setting, "index: only gid and pkey have it");
	return check_target(setting) && check_pkey_index(setting);
}

/* --- lists --- */

static bool add_event(struct vb_project *project, const struct vb_sim_event *event,
		      struct setting *setting)
{
	struct vb_sim_config *sim = &project->sim;

	if (sim->event_count == VB_SIM_EVENTS_MAX)
		return setting_fail(setting, "more than %d events", VB_SIM_EVENTS_MAX);
	project->events[sim->event_count++] = *event;
	sim->events = project->events;
	return true;
}

bool incident_take(const struct config *config, const struct config_value *entry,
		   unsigned int index, void *into)
{
	struct vb_project *project = into;
	struct vb_sim_event event = {0};
	struct setting setting = {.sim = &project->sim, .into = &event};

	return setting_config(&setting, &event_table, config, entry) &&
	       add_event(project, &event, &setting);
}

/* A setting_add_fn; @project is a struct vb_project. */
static bool add_event_text(void *project, const char *text, struct setting *setting)
{
	struct vb_sim_event event = {0};

	setting->into = &event;
	return setting_text(setting, &event_table, text) && add_event(project, &event, setting);
}

bool incident_add(struct vb_project *project, const char *text, struct vb_project_error *error)
{
	return setting_list(text, &project->sim, add_event_text, project, error->text,
			    sizeof(error->text));
}
