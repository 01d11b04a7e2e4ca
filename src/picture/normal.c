/* SPDX-License-Identifier: MIT */
#include "src/picture/normal.h"

#include "src/base/count.h"
#include "src/base/fnv.h"
#include "src/picture/event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_MIN (UINT64_C(1) << 32) /* a lower number is taken for a key or an identifier */
#define PSN_MASK    0xffffff
#define TEXT_MAX    160

/* --- which members --- */

/* How a member is compared. */
enum way {
	PLAIN,	  /* by its value */
	TIME,	  /* not at all if choice->time is set */
	NAMED,	  /* a number that the device has chosen; see place_of() */
	SENTENCE, /* not at all if a choice is set: its words repeat times, addresses and numbers */
	PSN,	  /* see psn_distance() */
	NEVER,	  /* not at all */
};

static const struct {
	const char *key;
	enum way way;
} members[] = {
	{"n", NEVER},
	{"t", TIME},
	{"duration_ns", TIME},
	{"qp", NAMED},
	{"dest_qp", NAMED},
	{"source_qp", NAMED},
	{"dest_qp_num", NAMED},
	{"remote_qpn", NAMED},
	{"xrc_srqn", NAMED},
	{"lkey", NAMED},
	{"rkey", NAMED},
	{"invalidate_rkey", NAMED},
	{"invalidated_rkey", NAMED},
	{"source_gid", NAMED},
	{"dest_gid", NAMED},
	{"gid", NAMED},
	{"dgid", NAMED},
	{"text", SENTENCE},
	{"psn", PSN},
	{"sent_psn", PSN},
	{"sq_psn", PSN},
	{"rq_psn", PSN},
};

static enum way way_of(const char *key)
{
	for (size_t i = 0; i < COUNT(members); i++)
		if (strcmp(members[i].key, key) == 0)
			return members[i].way;
	return PLAIN;
}

bool normal_ignore(struct normal_choice *choice, const char *name, size_t length)
{
	if (choice->field_count == NORMAL_FIELDS_MAX || length >= NORMAL_FIELD_BYTES)
		return false;
	memcpy(choice->fields[choice->field_count++], name, length);
	return true;
}

static bool is_ignored(const struct normal_choice *choice, const char *key, enum way way)
{
	for (unsigned int i = 0; i < choice->field_count; i++)
		if (strcmp(choice->fields[i], key) == 0)
			return true;
	if (way == SENTENCE)
		return choice->time || choice->addresses || choice->numbers;
	/* The bytes of a frame hold its addresses, numbers and checksums. */
	if (strcmp(key, "frame") == 0)
		return choice->addresses || choice->numbers || choice->field_count;
	return way == NEVER || (way == TIME && choice->time);
}

/* --- values --- */

static json_t *normal_value(struct normal *normal, const json_t *owner, const char *key,
			    const json_t *value);

/* Returns "number N" for a value: N counts the different values of all classes that this side had before it.
 * Two runs that get other numbers in the same order are equal in this form. */
static json_t *place_of(struct normal *normal, const char *class, const char *value)
{
	char name[TEXT_MAX], text[TEXT_MAX];
	const json_t *known;

	snprintf(name, sizeof(name), "%s %s", class, value);
	known = json_object_get(normal->seen, name);
	if (!known) {
		json_object_set_new(normal->seen, name,
				    json_integer((json_int_t)json_object_size(normal->seen)));
		known = json_object_get(normal->seen, name);
	}
	snprintf(text, sizeof(text), "number %" JSON_INTEGER_FORMAT, json_integer_value(known));
	return json_string(text);
}

/* Returns the distance of the PSN from the first PSN of its stream: the packets to one QP, or the events of
 * one QP. */
static json_t *psn_distance(struct normal *normal, const json_t *owner, const json_t *value)
{
	const char *dest = event_string(owner, "dest_qp");
	char name[TEXT_MAX];
	const json_t *first;

	snprintf(name, sizeof(name), "psn %s %s", *dest ? "to" : "of",
		 *dest ? dest : event_string(owner, "qp"));
	if (!json_object_get(normal->seen, name))
		json_object_set_new(normal->seen, name, json_integer(json_integer_value(value)));
	first = json_object_get(normal->seen, name);
	return json_integer((json_integer_value(value) - json_integer_value(first)) & PSN_MASK);
}

/* Returns what the number of a member names. The same value in two classes is two numbers: QP 5 and SRQ 5.
 * lkeys and rkeys are one class. */
static const char *class_of(const char *key)
{
	if (strstr(key, "key"))
		return "key";
	return strstr(key, "gid") ? "gid" : strstr(key, "srq") ? "srq" : "qp";
}

static json_t *normal_number(struct normal *normal, const json_t *owner, const char *key,
			     const json_t *value)
{
	const char *text = json_string_value(value);

	if (way_of(key) == PSN)
		return psn_distance(normal, owner, value);
	if (text && strncmp(text, "qp 0x", 5) == 0)
		return place_of(normal, "qp", text + 3);
	if (text && way_of(key) == NAMED)
		return place_of(normal, class_of(key), text);
	return NULL;
}

static json_t *normal_object(struct normal *normal, const json_t *object)
{
	json_t *form = json_object();
	const char *key;
	json_t *member;

	json_object_foreach((json_t *)object, key, member)
	{
		if (!is_ignored(normal->choice, key, way_of(key)))
			json_object_set_new(form, key, normal_value(normal, object, key, member));
	}
	return form;
}

static json_t *normal_array(struct normal *normal, const char *key, const json_t *array)
{
	json_t *form = json_array(), *member;
	size_t i;

	json_array_foreach(array, i, member)
		json_array_append_new(form, normal_value(normal, array, key, member));
	return form;
}

static bool is_address(const json_t *value)
{
	uint64_t number;

	return json_is_string(value) && strncmp(json_string_value(value), "0x", 2) == 0 &&
	       event_number(value, &number) && number >= ADDRESS_MIN;
}

static json_t *normal_value(struct normal *normal, const json_t *owner, const char *key,
			    const json_t *value)
{
	json_t *form = NULL;

	if (json_is_object(value))
		return normal_object(normal, value);
	if (json_is_array(value))
		return normal_array(normal, key, value);
	if (normal->choice->addresses && is_address(value))
		return json_string("an address");
	if (normal->choice->numbers)
		form = normal_number(normal, owner, key, value);
	return form ? form : json_copy((json_t *)value);
}

json_t *normal_event(struct normal *normal, const json_t *event)
{
	if (!normal->seen)
		normal->seen = json_object();
	return normal->seen ? normal_object(normal, event) : NULL;
}

void normal_free(struct normal *normal)
{
	json_decref(normal->seen);
	normal->seen = NULL;
}

/* --- hashes --- */

uint64_t normal_hash(const json_t *form)
{
	char *text = json_dumps(form, JSON_SORT_KEYS | JSON_COMPACT);
	const uint64_t hash = fnv_add_text(FNV_BASIS, text ? text : "");

	free(text);
	return hash;
}

/* --- differences --- */

/* Returns a value as text, which the caller frees. */
static char *value_text(const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : strdup("absent");
	char *cut = text && strlen(text) > TEXT_MAX ? text + TEXT_MAX : NULL;

	if (cut)
		strcpy(cut - 3, "...");
	return text;
}

/* Prints the first byte that differs: frames are long. */
static void print_frames(const char *a, const char *b, FILE *out)
{
	size_t at = 0;

	while (a[at] && a[at] == b[at])
		at++;
	at &= ~(size_t)1;
	fprintf(out, "byte %zu of the frame: %s%.2s | %s%.2s\n", at / 2, a[at] ? "0x" : "absent",
		a + at, b[at] ? "0x" : "absent", b + at);
}

static void print_pair(const char *path, const json_t *a, const json_t *b, FILE *out)
{
	char *left = value_text(a), *right = value_text(b);

	fprintf(out, "%s: %s | %s\n", path, left ? left : "", right ? right : "");
	free(left);
	free(right);
}

static void print_members(const char *path, const json_t *a, const json_t *b, FILE *out);

static void print_values(const char *path, const json_t *a, const json_t *b, FILE *out)
{
	if (json_equal(a, b))
		return;
	if (json_is_object(a) && json_is_object(b))
		print_members(path, a, b, out);
	else if (strcmp(path, "frame") == 0 && json_is_string(a) && json_is_string(b))
		print_frames(json_string_value(a), json_string_value(b), out);
	else
		print_pair(path, a, b, out);
}

static void print_members(const char *path, const json_t *a, const json_t *b, FILE *out)
{
	char whole[TEXT_MAX];
	const char *key;
	json_t *member;

	json_object_foreach((json_t *)a, key, member)
	{
		snprintf(whole, sizeof(whole), "%s%s%s", path, *path ? "." : "", key);
		print_values(whole, member, json_object_get(b, key), out);
	}
	json_object_foreach((json_t *)b, key, member)
	{
		snprintf(whole, sizeof(whole), "%s%s%s", path, *path ? "." : "", key);
		if (!json_object_get(a, key))
			print_values(whole, NULL, member, out);
	}
}

void normal_print_difference(const json_t *a, const json_t *b, FILE *out)
{
	print_members("", a, b, out);
}
