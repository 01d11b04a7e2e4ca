/* SPDX-License-Identifier: MIT */
#include "src/project/fault_rule.h"

#include "src/base/count.h"
#include "src/base/number.h"
#include "src/project/setting.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <verbena/packet.h>

#define NUMBER_24  0xffffff
#define HOUR_NS	   UINT64_C(3600000000000)
#define OPERATIONS 32
#define OPCODES	   256

/* --- opcodes --- */

/* Returns the name of an opcode without its transport, "SEND_LAST" for "RC SEND_LAST"; NULL if the opcode is of no
 * transport, or unknown. */
static const char *operation_name(unsigned int opcode)
{
	const char *name = vb_opcode_name((uint8_t)opcode);
	const char *space = name ? strchr(name, ' ') : NULL;

	return space ? space + 1 : NULL;
}

static void list_operations(char *text, size_t size_bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int operation = 0; operation < OPERATIONS; operation++) {
		const char *name = NULL;

		for (unsigned int opcode = operation; opcode < OPCODES && !name;
		     opcode += OPERATIONS)
			name = operation_name(opcode);
		if (name && used < size_bytes)
			used += (size_t)snprintf(text + used, size_bytes - used, "%s%s",
						 used ? ", " : "", name);
	}
}

/* Reads a name such as "RC SEND_LAST", a name without its transport, or a number. */
static bool read_opcode(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_fault_rule *rule = setting->into;
	char operations[600];
	uint64_t number = 0;

	rule->opcode_given = true;
	for (unsigned int opcode = 0; opcode < OPCODES; opcode++) {
		const char *name = vb_opcode_name((uint8_t)opcode);
		const char *operation = operation_name(opcode);

		rule->any_transport = operation && !strcmp(operation, value);
		rule->opcode = (uint8_t)opcode;
		if (rule->any_transport || (name && !strcmp(name, value)))
			return true;
	}
	if (vb_number_read(value, 0, OPCODES - 1, &number) == VB_NUMBER_GOOD) {
		rule->opcode = (uint8_t)number;
		return true;
	}
	list_operations(operations, sizeof(operations));
	return setting_fail(
		setting,
		"'%s' is no opcode (allowed: 0 to 0xff, CNP, and with or without RC, UC, "
		"RD, UD or XRC before it: %s)",
		value, operations);
}

/* --- messages of the connection manager --- */

static bool read_message(struct setting *setting, const struct setting_key *key, const char *value)
{
	const int index = vb_words_find(vb_fault_message_name, value);
	char allowed[128];

	if (index < 0)
		return setting_fail(
			setting, "'%s' is no message of the connection manager (allowed: %s)",
			value, vb_words_list(vb_fault_message_name, allowed, sizeof(allowed)));
	((struct vb_fault_rule *)setting->into)->message =
		vb_fault_message_name((unsigned int)index);
	return true;
}

/* Returns the message's field of that name, as a string that stays; NULL if the message has no such field. */
static const char *find_field(const char *message, const char *field)
{
	const char *name;
	unsigned int i = 0;

	do
		name = vb_fault_field_name(message, i++);
	while (name && strcmp(name, field) != 0);
	return name;
}

/* Reads the field of any message. check_field() checks later that the rule's message has it: the key `message` may
 * follow. */
static bool read_field(struct setting *setting, const struct setting_key *key, const char *value)
{
	struct vb_fault_rule *rule = setting->into;
	const char *message;

	for (unsigned int i = 0; !rule->field && (message = vb_fault_message_name(i)); i++)
		rule->field = find_field(message, value);
	return rule->field ||
	       setting_fail(setting,
			    "'%s' is no field of a message (docs/cm-messages.md names them)",
			    value);
}

/* --- the other keys --- */

static bool read_psn(struct setting *setting, const struct setting_key *key, const char *value)
{
	((struct vb_fault_rule *)setting->into)->psn_given = true;
	return setting_number32(setting, key, value);
}

static bool no_probability(struct setting *setting, const char *value)
{
	return setting_fail(setting, "'%s' is no probability (a number above 0, up to 1)", value);
}

static bool read_probability(struct setting *setting, const struct setting_key *key,
			     const char *value)
{
	double *probability = &((struct vb_fault_rule *)setting->into)->probability;
	const char *point = strchr(value, '.');
	double unit = 1;

	/* Not by strtod(), which takes the decimal point of the program's locale. */
	for (const char *c = value; *c; c++) {
		if (c == point)
			continue;
		if (*c < '0' || *c > '9')
			return no_probability(setting, value);
		*probability = *probability * 10 + (*c - '0');
		unit *= point && c > point ? 10 : 1;
	}
	*probability /= unit;
	return (*probability > 0 && *probability <= 1) || no_probability(setting, value);
}

static bool read_reason(struct setting *setting, const struct setting_key *key, const char *value)
{
	uint64_t number = 0;

	if (vb_number_read(value, key->min, key->max, &number) != VB_NUMBER_GOOD)
		return setting_fail(setting, "'%s' is no reason of a REJ (1 to 65535, such as 28)",
				    value);
	((struct vb_fault_rule *)setting->into)->reason = (uint16_t)number;
	return true;
}

#define RULE(member) offsetof(struct vb_fault_rule, member)

static const struct setting_key rule_keys[] = {
	{"action", setting_word, RULE(action), .words = vb_fault_action_name},
	{"from", setting_device, RULE(from)},
	{"opcode", read_opcode},
	{"psn", read_psn, RULE(psn), 0, NUMBER_24},
	{"dest_qpn", setting_number32, RULE(dest_qpn), 1, NUMBER_24},
	{"message", read_message},
	{"skip", setting_number, RULE(skip), 0, UINT64_MAX},
	{"count", setting_number, RULE(count), 1, UINT64_MAX},
	{"probability", read_probability},
	{"delay", setting_duration, RULE(delay_ns), 1, HOUR_NS},
	{"reason", read_reason, 0, 1, UINT16_MAX},
	{"change", setting_word, RULE(change), .words = vb_fault_change_name},
	{"field", read_field},
	{"offset", setting_number32, RULE(offset), 0, UINT32_MAX},
	{"value", setting_number, RULE(value), 0, UINT64_MAX},
	{"mask", setting_number, RULE(mask), 0, UINT64_MAX},
	{"flip", setting_number, RULE(flip), 0, UINT64_MAX},
	{"right_icrc", setting_flag, RULE(right_icrc)},
};

static bool check_rule(struct setting *setting);

static const struct setting_table rule_table = {rule_keys, COUNT(rule_keys), "action", check_rule};

/* The keys that only rules of one action may have. */
static const struct {
	const char *key;
	enum vb_fault_action action;
} action_keys[] = {
	{"delay", VB_FAULT_DELAY},	  {"change", VB_FAULT_CORRUPT},
	{"offset", VB_FAULT_CORRUPT},	  {"value", VB_FAULT_CORRUPT},
	{"mask", VB_FAULT_CORRUPT},	  {"flip", VB_FAULT_CORRUPT},
	{"right_icrc", VB_FAULT_CORRUPT}, {"field", VB_FAULT_CORRUPT},
	{"reason", VB_FAULT_REJECT},
};

static bool check_width(struct setting *setting, const char *key, uint64_t number)
{
	const struct vb_fault_rule *rule = setting->into;
	const uint64_t max = rule->field ? vb_fault_field_max(rule->message, rule->field)
					 : vb_fault_change_max(rule->change);

	return number <= max ||
	       setting_fail(setting, "%s: 0x%" PRIx64 " is wider than %s (0 to 0x%" PRIx64 ")", key,
			    number, rule->field ?: vb_fault_change_name(rule->change), max);
}

/* Checks the key `field`. A rule with a field changes that field, also without change=MESSAGE_FIELD. */
static bool check_field(struct setting *setting)
{
	struct vb_fault_rule *rule = setting->into;
	const bool given = setting_given(setting, &rule_table, "change");

	if (!rule->field)
		return rule->change != VB_CHANGE_MESSAGE_FIELD ||
		       setting_fail(setting, "field: is missing (change=MESSAGE_FIELD needs it)");
	if (given && rule->change != VB_CHANGE_MESSAGE_FIELD)
		return setting_fail(setting, "field: change=%s changes no field of a message",
				    vb_fault_change_name(rule->change));
	if (!rule->message)
		return setting_fail(setting, "message: is missing (field needs it)");
	rule->change = VB_CHANGE_MESSAGE_FIELD;
	return find_field(rule->message, rule->field) ||
	       setting_fail(setting,
			    "field: the message %s has no %s (docs/cm-messages.md names them)",
			    rule->message, rule->field);
}

static bool check_reject(struct setting *setting)
{
	const struct vb_fault_rule *rule = setting->into;

	if (rule->action != VB_FAULT_REJECT)
		return true;
	if (!rule->reason)
		return setting_fail(setting,
				    "reason: is missing (a rule of the action 'reject' needs it)");
	return (rule->message &&
		(!strcmp(rule->message, "REQ") || !strcmp(rule->message, "REP"))) ||
	       setting_fail(setting, "message: a rule of the action 'reject' needs REQ or REP");
}

static bool check_rule(struct setting *setting)
{
	const struct vb_fault_rule *rule = setting->into;
	char allowed[80];

	if (!setting_given(setting, &rule_table, "action"))
		return setting_fail(setting, "action: is missing (allowed: %s)",
				    vb_words_list(vb_fault_action_name, allowed, sizeof(allowed)));
	for (unsigned int i = 0; i < COUNT(action_keys); i++)
		if (rule->action != action_keys[i].action &&
		    setting_given(setting, &rule_table, action_keys[i].key))
			return setting_fail(setting, "%s: only a rule of the action '%s' has it",
					    action_keys[i].key,
					    vb_fault_action_name(action_keys[i].action));
	if (rule->action == VB_FAULT_DELAY && !rule->delay_ns)
		return setting_fail(setting,
				    "delay: is missing (a rule of the action 'delay' needs it)");
	return check_field(setting) && check_reject(setting) &&
	       check_width(setting, "value", rule->value) &&
	       check_width(setting, "mask", rule->mask) && check_width(setting, "flip", rule->flip);
}

/* --- lists --- */

static bool add_fault(struct vb_project *project, const struct vb_fault_rule *rule,
		      struct setting *setting)
{
	struct vb_sim_config *sim = &project->sim;

	if (sim->fault_count == VB_SIM_FAULTS_MAX)
		return setting_fail(setting, "more than %d rules", VB_SIM_FAULTS_MAX);
	project->faults[sim->fault_count++] = *rule;
	sim->faults = project->faults;
	return true;
}

bool fault_rule_take(const struct config *config, const struct config_value *entry,
		     unsigned int index, void *into)
{
	struct vb_project *project = into;
	struct vb_fault_rule rule = {0};
	struct setting setting = {.sim = &project->sim, .into = &rule};

	return setting_config(&setting, &rule_table, config, entry) &&
	       add_fault(project, &rule, &setting);
}

/* A setting_add_fn; @project is a struct vb_project. */
static bool add_fault_text(void *project, const char *text, struct setting *setting)
{
	struct vb_fault_rule rule = {0};

	setting->into = &rule;
	return setting_text(setting, &rule_table, text) && add_fault(project, &rule, setting);
}

bool fault_rule_add(struct vb_project *project, const char *text, struct vb_project_error *error)
{
	return setting_list(text, &project->sim, add_fault_text, project, error->text,
			    sizeof(error->text));
}
