/* SPDX-License-Identifier: MIT */
#include "src/project/setting.h"

#include "src/base/measure.h"
#include "src/base/number.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VALUE_BYTES_MAX 80
#define ENTRY_BYTES_MAX 512

bool setting_fail(struct setting *setting, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(setting->error, sizeof(setting->error), fmt, args);
	va_end(args);
	return false;
}

/* --- values --- */

static void *field(const struct setting *setting, const struct setting_key *key)
{
	return (char *)setting->into + key->offset;
}

static bool number(struct setting *setting, const struct setting_key *key, const char *value,
		   uint64_t *result)
{
	switch (vb_number_read(value, key->min, key->max, result)) {
	case VB_NUMBER_GOOD:
		return true;
	case VB_NUMBER_LEADING_ZERO:
		return setting_fail(setting, "'%s' begins with 0 (write it without, or 0x...)",
				    value);
	case VB_NUMBER_OUT_OF_RANGE:
		return setting_fail(setting, "'%s' is out of range (%" PRIu64 " to %" PRIu64 ")",
				    value, key->min, key->max);
	default:
		return setting_fail(setting, "'%s' is not a number (%" PRIu64 " to %" PRIu64 ")",
				    value, key->min, key->max);
	}
}

bool setting_number(struct setting *setting, const struct setting_key *key, const char *value)
{
	return number(setting, key, value, field(setting, key));
}

bool setting_number32(struct setting *setting, const struct setting_key *key, const char *value)
{
	uint64_t result = 0;

	if (!number(setting, key, value, &result))
		return false;
	*(uint32_t *)field(setting, key) = (uint32_t)result;
	return true;
}

bool setting_duration(struct setting *setting, const struct setting_key *key, const char *value)
{
	uint64_t *duration_ns = field(setting, key);
	enum vb_measured measured = vb_measure_read(value, &vb_measure_times, duration_ns);

	if (measured == VB_NOT_MEASURED)
		return setting_fail(setting, "'%s' is not understood (%s)", value,
				    vb_measure_times.allowed);
	if (measured == VB_NOT_WHOLE)
		return setting_fail(setting, "'%s' is finer than 1 %s", value,
				    vb_measure_times.units[0].name);
	if (measured == VB_MEASURED && *duration_ns >= key->min && *duration_ns <= key->max)
		return true;
	return setting_fail(setting, "'%s' is out of range (%" PRIu64 " ns to %" PRIu64 " s)",
			    value, key->min, key->max / 1000000000);
}

bool setting_word(struct setting *setting, const struct setting_key *key, const char *value)
{
	int index = vb_words_find(key->words, value);
	char allowed[512];

	if (index < 0)
		return setting_fail(setting, "'%s' is unknown (allowed: %s)", value,
				    vb_words_list(key->words, allowed, sizeof(allowed)));
	*(unsigned int *)field(setting, key) = (unsigned int)index;
	return true;
}

bool setting_flag(struct setting *setting, const struct setting_key *key, const char *value)
{
	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return setting_fail(setting, "'%s' is unknown (allowed: true, false)", value);
	*(bool *)field(setting, key) = !strcmp(value, "true");
	return true;
}

int setting_find_device(struct setting *setting, const char *name)
{
	char names[512] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < setting->sim->device_count; i++) {
		if (!strcmp(setting->sim->devices[i].name, name))
			return (int)i;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 i ? ", " : "", setting->sim->devices[i].name);
	}
	setting_fail(setting, "there is no device '%s' (allowed: %s)", name, names);
	return -1;
}

bool setting_device(struct setting *setting, const struct setting_key *key, const char *value)
{
	int index = setting_find_device(setting, value);

	if (index < 0)
		return false;
	*(const char **)field(setting, key) = setting->sim->devices[index].name;
	return true;
}

/* --- a text --- */

/* Returns the index of the key in the table; -1 if there is none. */
static int find_key(const struct setting_table *table, const char *name, size_t length)
{
	for (unsigned int i = 0; i < table->count; i++)
		if (strlen(table->keys[i].name) == length &&
		    !memcmp(table->keys[i].name, name, length))
			return (int)i;
	return -1;
}

bool setting_given(const struct setting *setting, const struct setting_table *table,
		   const char *name)
{
	return setting->given >> find_key(table, name, strlen(name)) & 1;
}

static bool unknown_key(struct setting *setting, const struct setting_table *table,
			const char *name, int length)
{
	char allowed[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < table->count && used < sizeof(allowed); i++)
		used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s",
					 i ? ", " : "", table->keys[i].name);
	return setting_fail(setting, "%.*s: unknown key (allowed: %s)", length, name, allowed);
}

/* Writes the key's name before the message about its value. */
static bool name_key(struct setting *setting, const struct setting_key *key)
{
	char message[sizeof(setting->error)];

	memcpy(message, setting->error, sizeof(message));
	return setting_fail(setting, "%s: %.*s", key->name, (int)sizeof(message) - 32, message);
}

/* Reads the value of a key, of @length bytes. */
static bool read_item_value(struct setting *setting, const struct setting_key *key,
			    const char *text, size_t length)
{
	char value[VALUE_BYTES_MAX];

	if (!length || length >= sizeof(value))
		return setting_fail(setting,
				    "%s: the value is %zu bytes long (1 to %d are allowed)",
				    key->name, length, VALUE_BYTES_MAX - 1);
	snprintf(value, sizeof(value), "%.*s", (int)length, text);
	return key->read(setting, key, value) || name_key(setting, key);
}

/* Reads "KEY=VALUE", or "KEY" for a flag; the first item may be the value of table->first alone. */
static bool read_item(struct setting *setting, const struct setting_table *table, const char *item,
		      size_t length, bool is_first)
{
	const char *equals = memchr(item, '=', length), *value = equals ? equals + 1 : NULL;
	const size_t key_length = equals ? (size_t)(equals - item) : length;
	int index = find_key(table, item, key_length);
	const struct setting_key *key;

	if (!length)
		return setting_fail(setting, "an entry is empty (take out a comma)");
	/* The word may also be the name of a key: "delay" is an action and a key. */
	if (is_first && !equals && table->first &&
	    (index < 0 || table->keys[index].read != setting_flag)) {
		index = find_key(table, table->first, strlen(table->first));
		value = item;
	}
	if (index < 0)
		return unknown_key(setting, table, item, (int)key_length);
	key = &table->keys[index];
	if (setting->given >> index & 1)
		return setting_fail(setting, "%s: given twice", key->name);
	setting->given |= UINT32_C(1) << index;
	if (value)
		return read_item_value(setting, key, value, length - (size_t)(value - item));
	if (key->read == setting_flag)
		return read_item_value(setting, key, "true", strlen("true"));
	return setting_fail(setting, "%s: has no value (write %s=...)", key->name, key->name);
}

bool setting_text(struct setting *setting, const struct setting_table *table, const char *text)
{
	const char *item = text;

	for (;;) {
		size_t length = strcspn(item, ",");

		if (!read_item(setting, table, item, length, item == text))
			return false;
		if (!item[length])
			return table->check(setting);
		item += length + 1;
	}
}

bool setting_list(const char *text, const struct vb_sim_config *sim, setting_add_fn *add,
		  void *list, char *message, size_t size_bytes)
{
	for (;;) {
		struct setting setting = {.sim = sim};
		char entry[ENTRY_BYTES_MAX];
		const size_t length = strcspn(text, ";");

		if (length >= sizeof(entry)) {
			snprintf(message, size_bytes, "'%.40s...' is longer than %d bytes", text,
				 ENTRY_BYTES_MAX - 1);
			return false;
		}
		snprintf(entry, sizeof(entry), "%.*s", (int)length, text);
		if (!add(list, entry, &setting)) {
			snprintf(message, size_bytes, "'%.150s': %s", entry, setting.error);
			return false;
		}
		if (!text[length])
			return true;
		text += length + 1;
	}
}

/* --- a value of a project --- */

/* What read_value() needs besides the key of config.h. */
struct bridge {
	struct setting *setting;
	const struct setting_table *table;
};

static bool read_value(const struct config *config, const struct config_value *value,
		       const struct config_key *key)
{
	const struct bridge *bridge = key->into;
	int index = find_key(bridge->table, key->name, strlen(key->name));
	const struct setting_key *own = &bridge->table->keys[index];
	char text[VALUE_BYTES_MAX];
	const char *word = text;

	if (!config_text(config, value, &(struct config_key){.into = text, .max = sizeof(text)}))
		return false;
	/* A word may have a leading colon, as a symbol of Ruby. */
	if (own->read == setting_word && text[0] == ':')
		word++;
	bridge->setting->given |= UINT32_C(1) << index;
	return own->read(bridge->setting, own, word) ||
	       config_fail(config, value, "%s", bridge->setting->error);
}

static bool read_mapping(struct setting *setting, const struct setting_table *table,
			 const struct config *config, const struct config_value *value)
{
	struct bridge bridge = {setting, table};
	struct config_key keys[SETTING_KEYS_MAX];

	for (unsigned int i = 0; i < table->count; i++)
		keys[i] = (struct config_key){
			.name = table->keys[i].name, .read = read_value, .into = &bridge};
	return config_mapping(config, value, keys, table->count) &&
	       (table->check(setting) || config_fail(config, value, "%s", setting->error));
}

bool setting_config(struct setting *setting, const struct setting_table *table,
		    const struct config *config, const struct config_value *value)
{
	char text[512];

	if (value->node->type == YAML_MAPPING_NODE)
		return read_mapping(setting, table, config, value);
	return config_text(config, value,
			   &(struct config_key){.into = text, .max = sizeof(text)}) &&
	       (setting_text(setting, table, text) ||
		config_fail(config, value, "%s", setting->error));
}
