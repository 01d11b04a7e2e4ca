/* SPDX-License-Identifier: MIT */
#include "src/project/config.h"

#include "src/base/count.h"
#include "src/base/measure.h"
#include "src/base/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A mapping that is merged (<<) may merge another one; in a wrong file it merges itself. */
#define MERGE_DEPTH_MAX 8

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

static bool is_text(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && !config_is_null(node);
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

/* Writes the text to @buffer for a message: shortened, and without control characters. Returns @buffer. */
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

/* Skips the leading colon of a name that is written as a symbol of Ruby. */
static const char *without_colon(const char *name)
{
	return name[0] == ':' ? name + 1 : name;
}

static void child_key(const struct config_value *parent, const char *name, char *key,
		      size_t size_bytes)
{
	char short_name[40];

	shown(without_colon(name), short_name, sizeof(short_name));
	if (parent->key[0] && strcmp(parent->key, CONFIG_TOP) != 0)
		snprintf(key, size_bytes, "%.50s.%s", parent->key, short_name);
	else
		snprintf(key, size_bytes, "%s", short_name);
}

/* A mapping that is being read. */
struct mapping {
	const struct config *config;
	const struct config_value *self;
	const struct config_key *keys;
	unsigned int count;
	struct config_value values[CONFIG_KEYS_MAX]; /* the value of each of the keys */
};

static bool unknown_key(const struct mapping *m, const struct config_value *found)
{
	char allowed[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < m->count && used < sizeof(allowed); i++)
		used += snprintf(allowed + used, sizeof(allowed) - used, "%s%s", i ? ", " : "",
				 m->keys[i].name);
	return config_fail(m->config, found, "unknown key (allowed: %s)", allowed);
}

static bool take_pair(struct mapping *m, const yaml_node_pair_t *pair, bool merged)
{
	yaml_node_t *name_node = yaml_document_get_node(m->config->document, pair->key);
	struct config_value found = {
		.node = yaml_document_get_node(m->config->document, pair->value),
		.line = name_node->start_mark.line + 1,
	};
	unsigned int i = 0;

	if (name_node->type != YAML_SCALAR_NODE) {
		memcpy(found.key, m->self->key, sizeof(found.key));
		return config_fail(m->config, &found, "a key is %s (a name is wanted)",
				   kind(name_node));
	}
	child_key(m->self, scalar(name_node), found.key, sizeof(found.key));
	while (i < m->count && strcmp(m->keys[i].name, without_colon(scalar(name_node))) != 0)
		i++;
	if (i == m->count)
		return unknown_key(m, &found);
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

static bool take_node(struct mapping *m, yaml_node_t *node, unsigned int depth);

/* A merge key names a mapping or a list of mappings. */
static bool take_merge(struct mapping *m, yaml_node_t *node, unsigned int depth)
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
static bool take_node(struct mapping *m, yaml_node_t *node, unsigned int depth)
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
		    const struct config_key *keys, unsigned int count)
{
	struct mapping m = {config, mapping, keys, count, {{0}}};
	bool valid = take_node(&m, mapping->node, 0);

	for (unsigned int i = 0; i < count; i++) {
		if (keys[i].value)
			*keys[i].value = m.values[i];
		if (valid && m.values[i].node)
			valid = keys[i].read(config, &m.values[i], &keys[i]);
	}
	return valid;
}

struct config_value config_entry(const struct config *config, const struct config_value *list,
				 unsigned int index)
{
	struct config_value entry = {
		.node = yaml_document_get_node(config->document,
					       list->node->data.sequence.items.start[index]),
	};

	/* If the entry is an alias, this is the line of the node that it stands for. */
	entry.line = entry.node->start_mark.line + 1;
	snprintf(entry.key, sizeof(entry.key), "%.80s[%u]", list->key, index);
	return entry;
}

bool config_list(const struct config *config, const struct config_value *list,
		 const struct config_key *key)
{
	size_t entries;

	if (list->node->type != YAML_SEQUENCE_NODE)
		return wrong_type(config, list, "a list");
	entries = list->node->data.sequence.items.top - list->node->data.sequence.items.start;
	if (entries < key->min || entries > key->max)
		return config_fail(config, list, "%zu %s (%u to %u are allowed)", entries,
				   key->entries, (unsigned int)key->min, (unsigned int)key->max);
	for (size_t i = 0; i < entries; i++) {
		struct config_value entry = config_entry(config, list, i);

		if (!key->entry(config, &entry, i, key->into))
			return false;
	}
	return true;
}

bool config_text(const struct config *config, const struct config_value *value,
		 const struct config_key *key)
{
	size_t length_bytes;

	if (!is_text(value->node))
		return wrong_type(config, value, "a text");
	length_bytes = value->node->data.scalar.length;
	if (!length_bytes || length_bytes >= key->max)
		return config_fail(config, value, "%zu bytes long (1 to %u are allowed)",
				   length_bytes, (unsigned int)key->max - 1);
	for (size_t i = 0; i < length_bytes; i++)
		if (iscntrl((unsigned char)scalar(value->node)[i]))
			return config_fail(config, value, "has a control character");
	memcpy(key->into, scalar(value->node), length_bytes + 1);
	return true;
}

bool config_name(const struct config *config, const struct config_value *value,
		 const struct config_key *key)
{
	char buffer[48];

	if (!config_text(config, value, key))
		return false;
	for (const char *c = key->into; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
			return config_fail(config, value,
					   "'%s' is not a name (letters, digits, '_', '-' and '.')",
					   shown(key->into, buffer, sizeof(buffer)));
	return true;
}

bool config_number(const struct config *config, const struct config_value *value,
		   const struct config_key *key)
{
	enum vb_number read;
	char text[48];

	if (!is_plain(value->node) || !is_text(value->node))
		return wrong_type(config, value, "a number");
	shown(scalar(value->node), text, sizeof(text));
	read = vb_number_read(scalar(value->node), key->min, key->max, key->into);
	if (read == VB_NUMBER_GOOD)
		return true;
	if (read == VB_NUMBER_LEADING_ZERO)
		return config_fail(config, value, "'%s' begins with 0 (write it without, or 0x...)",
				   text);
	return config_fail(config, value, "'%s' is %s (%" PRIu64 " to %" PRIu64 ")", text,
			   read == VB_NUMBER_OUT_OF_RANGE ? "out of range" : "not a number",
			   key->min, key->max);
}

bool config_word(const struct config *config, const struct config_value *value,
		 const struct config_key *key)
{
	char allowed[256], buffer[48];
	int *index = key->into;

	if (!is_text(value->node))
		return wrong_type(config, value, "a word");
	*index = vb_words_find(key->words, without_colon(scalar(value->node)));
	return *index >= 0 || config_fail(config, value, "'%s' is unknown (allowed: %s)",
					  shown(scalar(value->node), buffer, sizeof(buffer)),
					  vb_words_list(key->words, allowed, sizeof(allowed)));
}

static bool measured(const struct config *config, const struct config_value *value,
		     const struct vb_measure *by, uint64_t *result)
{
	char buffer[48];

	if (!is_text(value->node))
		return wrong_type(config, value, by->allowed);
	shown(scalar(value->node), buffer, sizeof(buffer));
	switch (vb_measure_read(scalar(value->node), by, result)) {
	case VB_MEASURED:
		return true;
	case VB_NOT_WHOLE:
		return config_fail(config, value, "'%s' is finer than 1 %s", buffer,
				   by->units[0].name);
	case VB_TOO_BIG:
		return config_fail(config, value, "'%s' is too large (%s)", buffer, by->allowed);
	default:
		return config_fail(config, value, "'%s' is not understood (%s)", buffer,
				   by->allowed);
	}
}

bool config_duration(const struct config *config, const struct config_value *value,
		     const struct config_key *key)
{
	const uint64_t *duration_ns = key->into;

	if (!measured(config, value, &vb_measure_times, key->into))
		return false;
	return *duration_ns <= key->max ||
	       config_fail(config, value, "'%.40s' is too large (up to %" PRIu64 " s)",
			   scalar(value->node), key->max / 1000000000);
}

bool config_rate(const struct config *config, const struct config_value *value,
		 const struct config_key *key)
{
	const uint64_t *bits_per_second = key->into;

	return measured(config, value, &vb_measure_rates, key->into) &&
	       (*bits_per_second ||
		config_fail(config, value, "is 0 (leave the key out for no limit)"));
}
