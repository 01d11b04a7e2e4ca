/* SPDX-License-Identifier: MIT */
#include "src/project/config.h"

#include "src/base/count.h"
#include "src/base/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A merge key may name a mapping with a merge key, and in a wrong file itself. */
#define MERGE_DEPTH_MAX 8

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit time_units[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0},
};

static const struct unit rate_units[] = {
	{"bps", 1}, {"Kbps", 1000}, {"Mbps", 1000000}, {"Gbps", 1000000000}, {NULL, 0},
};

bool config_fail(const struct config *config, const struct config_value *value, const char *fmt,
		 ...)
{
	int used;
	va_list args;

	used = snprintf(config->error, config->error_size_bytes, "%s:%u: %s: ", config->file,
			value->line, value->key);
	if (used < 0 || (size_t)used >= config->error_size_bytes)
		return false;
	va_start(args, fmt);
	vsnprintf(config->error + used, config->error_size_bytes - used, fmt, args);
	va_end(args);
	return false;
}

static const char *scalar(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

static bool is_plain(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

bool config_is_null(const yaml_node_t *node)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

	if (!is_plain(node))
		return false;
	for (size_t i = 0; i < COUNT(nulls); i++)
		if (!strcmp(scalar(node), nulls[i]))
			return true;
	return false;
}

static const char *kind(const yaml_node_t *node)
{
	if (config_is_null(node))
		return "nothing";
	switch (node->type) {
	case YAML_SEQUENCE_NODE:
		return "a list";
	case YAML_MAPPING_NODE:
		return "a mapping";
	default:
		return "a text";
	}
}

/* The text for a message: shortened, and without control characters. */
static const char *shown(const char *text, char *buffer, size_t size_bytes)
{
	size_t i;

	for (i = 0; text[i] && i < size_bytes - 1; i++)
		buffer[i] = iscntrl((unsigned char)text[i]) ? '?' : text[i];
	buffer[i] = '\0';
	if (text[i] && size_bytes > 4)
		memcpy(buffer + size_bytes - 4, "...", 4);
	return buffer;
}

static bool wrong_type(const struct config *config, const struct config_value *value,
		       const char *wanted)
{
	return config_fail(config, value, "is %s (%s is wanted)", kind(value->node), wanted);
}

static void child_key(const struct config_value *parent, const char *name, char *key,
		      size_t size_bytes)
{
	char short_name[40];

	shown(name[0] == ':' ? name + 1 : name, short_name, sizeof(short_name));
	if (parent->key[0] && strcmp(parent->key, CONFIG_TOP) != 0)
		snprintf(key, size_bytes, "%.50s.%s", parent->key, short_name);
	else
		snprintf(key, size_bytes, "%s", short_name);
}

static void list_names(const char *const *names, unsigned int count, char *text, size_t size_bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < count && used < size_bytes; i++)
		used += snprintf(text + used, size_bytes - used, "%s%s", i ? ", " : "", names[i]);
}

static int find_name(const char *const *names, unsigned int count, const char *name)
{
	if (name[0] == ':')
		name++;
	for (unsigned int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

struct mapping {
	const struct config *config;
	const struct config_value *self;
	const char *const *names;
	unsigned int count;
	struct config_value *values;
};

static bool take_pair(const struct mapping *m, const yaml_node_pair_t *pair, bool merged)
{
	yaml_node_t *name_node = yaml_document_get_node(m->config->document, pair->key);
	struct config_value found = {
		.node = yaml_document_get_node(m->config->document, pair->value),
		.line = name_node->start_mark.line + 1,
	};
	char allowed[256];
	int i;

	if (name_node->type != YAML_SCALAR_NODE) {
		memcpy(found.key, m->self->key, sizeof(found.key));
		return config_fail(m->config, &found, "a key is %s (a name is wanted)",
				   kind(name_node));
	}
	child_key(m->self, scalar(name_node), found.key, sizeof(found.key));
	i = find_name(m->names, m->count, scalar(name_node));
	if (i < 0) {
		list_names(m->names, m->count, allowed, sizeof(allowed));
		return config_fail(m->config, &found, "unknown key (allowed: %s)", allowed);
	}
	if (m->values[i].node) {
		if (merged)
			return true;
		return config_fail(m->config, &found, "given twice (first in line %u)",
				   m->values[i].line);
	}
	if (config_is_null(found.node))
		return config_fail(m->config, &found,
				   "has no value (give one or leave the key out)");
	m->values[i] = found;
	return true;
}

static bool is_merge(const struct config *config, const yaml_node_pair_t *pair)
{
	yaml_node_t *name = yaml_document_get_node(config->document, pair->key);

	return is_plain(name) && !strcmp(scalar(name), "<<");
}

static bool take_node(const struct mapping *m, yaml_node_t *node, unsigned int depth);

/* A merge key names a mapping or a list of mappings. */
static bool take_merge(const struct mapping *m, yaml_node_t *node, unsigned int depth)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return take_node(m, node, depth + 1);
	for (yaml_node_item_t *item = node->data.sequence.items.start;
	     item < node->data.sequence.items.top; item++)
		if (!take_node(m, yaml_document_get_node(m->config->document, *item), depth + 1))
			return false;
	return true;
}

/* Takes a mapping's own keys first, since they win over merged ones. */
static bool take_node(const struct mapping *m, yaml_node_t *node, unsigned int depth)
{
	struct config_value self = *m->self;
	yaml_node_pair_t *pair;

	self.node = node;
	if (depth > MERGE_DEPTH_MAX)
		return config_fail(m->config, &self, "merge keys (<<) nested deeper than %d",
				   MERGE_DEPTH_MAX);
	if (node->type != YAML_MAPPING_NODE)
		return wrong_type(m->config, &self, "a mapping");
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++)
		if (!is_merge(m->config, pair) && !take_pair(m, pair, depth > 0))
			return false;
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++)
		if (is_merge(m->config, pair) &&
		    !take_merge(m, yaml_document_get_node(m->config->document, pair->value), depth))
			return false;
	return true;
}

bool config_mapping(const struct config *config, const struct config_value *mapping,
		    const char *const *names, unsigned int count, struct config_value *values)
{
	const struct mapping m = {config, mapping, names, count, values};

	memset(values, 0, count * sizeof(*values));
	return take_node(&m, mapping->node, 0);
}

struct config_value config_entry(const struct config *config, const struct config_value *list,
				 unsigned int index)
{
	struct config_value entry = {
		.node = yaml_document_get_node(config->document,
					       list->node->data.sequence.items.start[index]),
	};

	/* An alias stands for a node on another line; messages name that line. */
	entry.line = entry.node->start_mark.line + 1;
	snprintf(entry.key, sizeof(entry.key), "%.80s[%u]", list->key, index);
	return entry;
}

bool config_list(const struct config *config, const struct config_value *list, const char *what,
		 unsigned int min, unsigned int max, config_entry_fn *read, void *arg)
{
	size_t entries;

	if (!list->node)
		return true;
	if (list->node->type != YAML_SEQUENCE_NODE)
		return wrong_type(config, list, "a list");
	entries = list->node->data.sequence.items.top - list->node->data.sequence.items.start;
	if (entries < min || entries > max)
		return config_fail(config, list, "%zu %s (%u to %u are allowed)", entries, what,
				   min, max);
	for (size_t i = 0; i < entries; i++) {
		struct config_value entry = config_entry(config, list, i);

		if (!read(config, &entry, i, arg))
			return false;
	}
	return true;
}

bool config_text(const struct config *config, const struct config_value *value, char *text,
		 size_t size_bytes)
{
	size_t length_bytes;

	if (!value->node)
		return true;
	if (value->node->type != YAML_SCALAR_NODE || config_is_null(value->node))
		return wrong_type(config, value, "a text");
	length_bytes = value->node->data.scalar.length;
	if (!length_bytes || length_bytes >= size_bytes)
		return config_fail(config, value, "%zu bytes long (1 to %zu are allowed)",
				   length_bytes, size_bytes - 1);
	for (size_t i = 0; i < length_bytes; i++)
		if (iscntrl((unsigned char)scalar(value->node)[i]))
			return config_fail(config, value, "has a control character");
	memcpy(text, scalar(value->node), length_bytes + 1);
	return true;
}

bool config_name(const struct config *config, const struct config_value *value, char *name,
		 size_t size_bytes)
{
	char buffer[48];

	if (!config_text(config, value, name, size_bytes))
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
			return config_fail(config, value,
					   "'%s' is not a name (letters, digits, '_', '-' and '.')",
					   shown(name, buffer, sizeof(buffer)));
	return true;
}

bool config_number(const struct config *config, const struct config_value *value, uint64_t min,
		   uint64_t max, uint64_t *number)
{
	char text[48];

	if (!value->node)
		return true;
	if (!is_plain(value->node) || config_is_null(value->node))
		return wrong_type(config, value, "a number");
	shown(scalar(value->node), text, sizeof(text));
	switch (vb_number_read(scalar(value->node), min, max, number)) {
	case VB_NUMBER_GOOD:
		return true;
	case VB_NUMBER_LEADING_ZERO:
		return config_fail(config, value, "'%s' begins with 0 (write it without, or 0x...)",
				   text);
	case VB_NUMBER_OUT_OF_RANGE:
		return config_fail(config, value,
				   "'%s' is out of range (%" PRIu64 " to %" PRIu64 ")", text, min,
				   max);
	default:
		return config_fail(config, value,
				   "'%s' is not a number (%" PRIu64 " to %" PRIu64 ")", text, min,
				   max);
	}
}

bool config_word(const struct config *config, const struct config_value *value,
		 const struct project_word *words, int *meaning)
{
	const struct project_word *word;
	char allowed[256], buffer[48];
	const char *text;

	if (!value->node)
		return true;
	if (value->node->type != YAML_SCALAR_NODE || config_is_null(value->node))
		return wrong_type(config, value, "a word");
	text = scalar(value->node);
	word = project_find_word(words, text[0] == ':' ? text + 1 : text, allowed, sizeof(allowed));
	if (!word)
		return config_fail(config, value, "'%s' is unknown (allowed: %s)",
				   shown(text, buffer, sizeof(buffer)), allowed);
	*meaning = word->meaning;
	return true;
}

enum measured { MEASURED, NOT_MEASURED, NOT_WHOLE, TOO_BIG };

/* Converts "number[.fraction][ ]unit" to the smallest unit. */
static enum measured measure(const char *text, const struct unit *units, uint64_t *result)
{
	size_t whole = strspn(text, "0123456789"), fraction = 0;
	const char *rest = text + whole;
	uint64_t number, part = 0, scale = 1;
	const struct unit *unit;

	if (*rest == '.') {
		fraction = strspn(rest + 1, "0123456789");
		if (!fraction)
			return NOT_MEASURED;
		rest += 1 + fraction;
	}
	rest += strspn(rest, " ");
	for (unit = units; unit->name && strcmp(unit->name, *rest ? rest : units->name) != 0;
	     unit++)
		;
	if (!whole || !unit->name)
		return NOT_MEASURED;
	if (!vb_number_digits(text, whole, 10, &number) ||
	    __builtin_mul_overflow(number, unit->factor, &number))
		return TOO_BIG;
	for (size_t i = 0; i < fraction; i++) {
		unsigned int digit = text[whole + 1 + i] - '0';

		if (digit && scale >= unit->factor)
			return NOT_WHOLE;
		if (scale < unit->factor) {
			scale *= 10;
			part += digit * (unit->factor / scale);
		}
	}
	return __builtin_add_overflow(number, part, result) ? TOO_BIG : MEASURED;
}

/* Reads a measure, or writes a message; allowed describes the form for the message. */
static bool measured(const struct config *config, const struct config_value *value,
		     const struct unit *units, const char *allowed, uint64_t *result)
{
	char buffer[48];

	if (value->node->type != YAML_SCALAR_NODE || config_is_null(value->node))
		return wrong_type(config, value, allowed);
	shown(scalar(value->node), buffer, sizeof(buffer));
	switch (measure(scalar(value->node), units, result)) {
	case MEASURED:
		return true;
	case NOT_WHOLE:
		return config_fail(config, value, "'%s' is finer than 1 %s", buffer, units->name);
	case TOO_BIG:
		return config_fail(config, value, "'%s' is too large (%s)", buffer, allowed);
	default:
		return config_fail(config, value, "'%s' is not understood (%s)", buffer, allowed);
	}
}

bool config_duration(const struct config *config, const struct config_value *value, uint64_t max_ns,
		     uint64_t *duration_ns)
{
	static const char allowed[] = "nanoseconds, or a number with ns, us, ms or s";

	if (!value->node)
		return true;
	if (!measured(config, value, time_units, allowed, duration_ns))
		return false;
	if (*duration_ns > max_ns)
		return config_fail(config, value, "'%.40s' is too large (up to %" PRIu64 " s)",
				   scalar(value->node), max_ns / 1000000000);
	return true;
}

bool config_rate(const struct config *config, const struct config_value *value,
		 uint64_t *bits_per_second)
{
	static const char allowed[] = "bits a second, or a number with Kbps, Mbps or Gbps";

	if (!value->node)
		return true;
	if (!measured(config, value, rate_units, allowed, bits_per_second))
		return false;
	if (!*bits_per_second)
		return config_fail(config, value, "is 0 (leave the key out for no limit)");
	return true;
}
