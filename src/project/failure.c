/* SPDX-License-Identifier: MIT */
#include "src/project/failure.h"

#include "src/base/count.h"
#include "src/base/number.h"
#include "src/project/setting.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <verbena/verbs.h>

#define NUMBER_24 0xffffff
#define ERRNO_MAX 4095
#define AT_MAX	  65535 /* index in a list of work requests */
#define PORT_MAX  255

#define STATUS_BYTES 7 /* of "IBV_WC_" */

/* Values of the key `fail` that name no call. */
static const struct {
	const char *word;
	enum vb_fail_action action;
} words[] = {
	{"any", VB_FAIL_CALL},
	{"allocation", VB_FAIL_ALLOCATION},
	{"descriptor", VB_FAIL_DESCRIPTOR},
	{"thread", VB_FAIL_THREAD},
	{"completion", VB_FAIL_COMPLETION},
	{"made_completion", VB_FAIL_MADE},
	{"event", VB_FAIL_EVENT},
};

static bool read_fail(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_fail_rule *rule = &((struct vb_failure *)setting->into)->rule;
	const int call = vb_words_find(vb_fail_call_name, value);

	for (unsigned int i = 0; i < COUNT(words); i++)
		if (strcmp(words[i].word, value) == 0) {
			rule->action = words[i].action;
			return true;
		}
	if (call < 0)
		return setting_fail(
			setting,
			"'%s' is no call that can fail (allowed: a verb such as create_qp, a "
			"function of connections such as cm_connect, any, allocation, "
			"descriptor, thread, completion, made_completion, event)",
			value);
	rule->call = vb_fail_call_name((unsigned int)call);
	return true;
}

static bool read_device(struct setting *setting, const struct setting_key *key, const char *value)
{
	char *device = ((struct vb_failure *)setting->into)->device;

	if (strlen(value) >= VB_SIM_NAME_MAX)
		return setting_fail(setting, "'%s' is longer than %d bytes", value,
				    VB_SIM_NAME_MAX - 1);
	strcpy(device, value);
	return true;
}

/* Reads a name such as ENOMEM, or a number. */
static bool read_errno(struct setting *setting, const struct setting_key *key, const char *value)
{
	int *err = &((struct vb_failure *)setting->into)->rule.err;
	uint64_t number = 0;

	for (int i = 1; i <= ERRNO_MAX; i++) {
		const char *name = strerrorname_np(i);

		if (name && strcmp(name, value) == 0) {
			*err = i;
			return true;
		}
	}
	if (vb_number_read(value, 1, ERRNO_MAX, &number) != VB_NUMBER_GOOD)
		return setting_fail(
			setting, "'%s' is no errno value (allowed: a name such as ENOMEM, 1 to %d)",
			value, ERRNO_MAX);
	*err = (int)number;
	return true;
}

static bool read_call(struct setting *setting, const struct setting_key *key, const char *value)
{
	const int call = vb_words_find(vb_fail_call_name, value);

	if (call < 0)
		return setting_fail(setting, "'%s' is no call that can fail", value);
	((struct vb_failure *)setting->into)->rule.call = vb_fail_call_name((unsigned int)call);
	return true;
}

static const struct {
	const char *name;
	enum ibv_event_type event;
} events[] = {
	{"PORT_ERR", IBV_EVENT_PORT_ERR},
	{"PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE},
	{"SM_CHANGE", IBV_EVENT_SM_CHANGE},
	{"CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER},
	{"DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL},
	{"QP_FATAL", IBV_EVENT_QP_FATAL},
	{"QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR},
	{"QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR},
	{"COMM_EST", IBV_EVENT_COMM_EST},
	{"SQ_DRAINED", IBV_EVENT_SQ_DRAINED},
	{"PATH_MIG", IBV_EVENT_PATH_MIG},
	{"PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR},
	{"QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED},
	{"CQ_ERR", IBV_EVENT_CQ_ERR},
	{"SRQ_ERR", IBV_EVENT_SRQ_ERR},
	{"SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED},
};

static const char *event_name(unsigned int index)
{
	return index < COUNT(events) ? events[index].name : NULL;
}

static bool read_type(struct setting *setting, const struct setting_key *key, const char *value)
{
	unsigned int index = 0;
	struct setting word = {.into = &index};

	if (!setting_word(&word, &(struct setting_key){.words = event_name}, value))
		return setting_fail(setting, "%s", word.error);
	((struct vb_failure *)setting->into)->rule.event = events[index].event;
	return true;
}

static const char *status_name(unsigned int index)
{
	return index <= IBV_WC_TM_RNDV_INCOMPLETE ? vb_wc_status_name(index) + STATUS_BYTES : NULL;
}

static bool read_wr_id(struct setting *setting, const struct setting_key *key, const char *value)
{
	((struct vb_failure *)setting->into)->rule.wr_id_given = true;
	return setting_number(setting, key, value);
}

#define RULE(member) offsetof(struct vb_failure, rule.member)

static const struct setting_key keys[] = {
	{"fail", read_fail},
	{"device", read_device},
	{"skip", setting_number, RULE(skip), 0, UINT64_MAX},
	{"count", setting_number, RULE(count), 1, UINT64_MAX},
	{"errno", read_errno},
	{"at", setting_number32, RULE(at), 0, AT_MAX},
	{"status", setting_word, RULE(status), .words = status_name},
	{"vendor_err", setting_number32, RULE(vendor_err), 0, UINT32_MAX},
	{"qpn", setting_number32, RULE(qpn), 0, NUMBER_24},
	{"wr_id", read_wr_id, RULE(wr_id), 0, UINT64_MAX},
	{"call", read_call},
	{"type", read_type},
	{"port", setting_number32, RULE(port_num), 1, PORT_MAX},
	{"object", setting_number32, RULE(object), 1, UINT32_MAX},
};

static bool check(struct setting *setting);

static const struct setting_table table = {keys, COUNT(keys), "fail", check};

enum kind { CALLS = 1, COMPLETIONS = 2, EVENTS = 4, DESCRIPTORS = 8 };

/* The keys that only rules of some kinds may have. */
static const struct {
	const char *key;
	unsigned int kinds;
	const char *kinds_text;
} kind_keys[] = {
	{"errno", CALLS | DESCRIPTORS, "calls and descriptors"},
	{"at", CALLS, "calls"},
	{"status", COMPLETIONS, "completions"},
	{"vendor_err", COMPLETIONS, "completions"},
	{"qpn", COMPLETIONS | EVENTS, "completions and events"},
	{"wr_id", COMPLETIONS, "completions"},
	{"call", EVENTS, "events"},
	{"type", EVENTS, "events"},
	{"port", EVENTS, "events"},
	{"object", EVENTS, "events"},
};

/* Returns true for a call that takes a list of work requests. */
static bool takes_list(const char *call)
{
	return call && (!strcmp(call, "post_send") || !strcmp(call, "post_recv") ||
			!strcmp(call, "post_srq_recv"));
}

static bool check(struct setting *setting)
{
	static const enum kind kinds[] = {[VB_FAIL_CALL] = CALLS,
					  [VB_FAIL_COMPLETION] = COMPLETIONS,
					  [VB_FAIL_MADE] = COMPLETIONS,
					  [VB_FAIL_EVENT] = EVENTS,
					  [VB_FAIL_DESCRIPTOR] = DESCRIPTORS,
					  [VB_FAIL_THREAD] = 0};
	const struct vb_fail_rule *rule = &((struct vb_failure *)setting->into)->rule;

	if (!setting_given(setting, &table, "fail"))
		return setting_fail(setting,
				    "fail: is missing (a call, any, allocation, descriptor, "
				    "thread, completion, made_completion or event)");
	if (!kinds[rule->action] || kinds[rule->action] == DESCRIPTORS)
		if (setting_given(setting, &table, "device"))
			return setting_fail(setting, "device: a rule of allocations, descriptors "
						     "and threads has none");
	for (unsigned int i = 0; i < COUNT(kind_keys); i++)
		if (setting_given(setting, &table, kind_keys[i].key) &&
		    !(kinds[rule->action] & kind_keys[i].kinds))
			return setting_fail(setting, "%s: only a rule of %s has it",
					    kind_keys[i].key, kind_keys[i].kinds_text);
	if (rule->action == VB_FAIL_EVENT && !setting_given(setting, &table, "type"))
		return setting_fail(setting, "type: is missing (a rule of events needs it)");
	return !rule->at || takes_list(rule->call) ||
	       setting_fail(setting, "at: only post_send, post_recv and post_srq_recv have it");
}

/* --- lists --- */

static bool add(struct vb_failures *failures, const struct vb_failure *failure,
		struct setting *setting)
{
	struct vb_failure *place = &failures->failures[failures->count];

	if (failures->count == VB_FAIL_RULES_MAX)
		return setting_fail(setting, "more than %d rules", VB_FAIL_RULES_MAX);
	*place = *failure;
	if (place->device[0])
		place->rule.device = place->device;
	failures->count++;
	return true;
}

bool failure_take(const struct config *config, const struct config_value *entry, unsigned int index,
		  void *into)
{
	struct vb_failure failure = {0};
	struct setting setting = {.into = &failure};

	return setting_config(&setting, &table, config, entry) &&
	       (add(into, &failure, &setting) || config_fail(config, entry, "%s", setting.error));
}

/* A setting_add_fn. */
static bool add_text(void *failures, const char *text, struct setting *setting)
{
	struct vb_failure failure = {0};

	setting->into = &failure;
	return setting_text(setting, &table, text) && add(failures, &failure, setting);
}

bool failure_read(struct vb_failures *failures, const char *text, struct vb_project_error *error)
{
	return setting_list(text, NULL, add_text, failures, error->text, sizeof(error->text));
}

int vb_project_fail(const struct vb_project *project)
{
	return failure_apply(&project->failures);
}

int failure_apply(const struct vb_failures *failures)
{
	int err = 0;

	for (unsigned int i = 0; i < failures->count && !err; i++)
		err = vb_fail_add(&failures->failures[i].rule, NULL);
	return err;
}
