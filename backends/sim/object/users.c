/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/users.h"

#include <stdio.h>

#define TEXT_BYTES 300

/* Where objects keep the objects that they use. */
static const struct {
	enum kind user, used;
	size_t offset;
} links[] = {
	{KIND_QP, KIND_PD, offsetof(struct qp, pd)},
	{KIND_QP, KIND_CQ, offsetof(struct qp, ibv.send_cq)},
	{KIND_QP, KIND_CQ, offsetof(struct qp, ibv.recv_cq)},
	{KIND_QP, KIND_SRQ, offsetof(struct qp, ibv.srq)},
	{KIND_QP, KIND_XRCD, offsetof(struct qp, xrcd)},
	{KIND_SRQ, KIND_PD, offsetof(struct srq, pd)},
	{KIND_SRQ, KIND_CQ, offsetof(struct srq, cq)},
	{KIND_SRQ, KIND_XRCD, offsetof(struct srq, xrcd)},
	{KIND_CQ, KIND_PD, offsetof(struct cq, parent)},
	{KIND_CQ, KIND_CHANNEL, offsetof(struct cq, channel)},
	{KIND_AH, KIND_PD, offsetof(struct ah, pd)},
	{KIND_MW, KIND_PD, offsetof(struct mw, pd)},
	{KIND_MR, KIND_PD, offsetof(struct mr, pd)},
	{KIND_MR, KIND_DM, offsetof(struct mr, dm)},
	{KIND_PD, KIND_PD, offsetof(struct pd, extends)},
	{KIND_PD, KIND_TD, offsetof(struct pd, td)},
};

static const void *at_offset(const void *object, size_t offset)
{
	return *(const void *const *)((const char *)object + offset);
}

/* An import uses nothing: its root does. */
static bool uses(enum kind user, const void *object, enum kind kind, const void *used)
{
	if (object_root(user, object) != object)
		return false;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		const void *other;

		if (links[i].user != user || links[i].used != kind)
			continue;
		other = at_offset(object, links[i].offset);
		if (other && object_root(kind, other) == used)
			return true;
	}
	return false;
}

struct words {
	char *text;
	size_t size_bytes;
	size_t used;
};

static void add(struct words *words, const char *text)
{
	const size_t room = words->size_bytes - words->used;
	const int length = snprintf(words->text + words->used, room, "%s", text);

	words->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_count(struct words *words, uint32_t count, const char *name)
{
	char part[64];

	snprintf(part, sizeof(part), "%s%u %s%s", words->used ? ", " : "", count, name,
		 count == 1 ? "" : "s");
	add(words, part);
}

/* Adds the number by which a program knows the object. */
static void add_number(struct words *words, enum kind kind, void *object)
{
	char part[64];

	switch (kind) {
	case KIND_QP:
		snprintf(part, sizeof(part), "number 0x%x", ((struct qp *)object)->ibv.qp_num);
		break;
	case KIND_MR:
		snprintf(part, sizeof(part), "lkey 0x%x", ((struct mr *)object)->ibv.lkey);
		break;
	case KIND_MW:
		snprintf(part, sizeof(part), "rkey 0x%x", ((struct mw *)object)->ibv.rkey);
		break;
	default:
		snprintf(part, sizeof(part), "handle %u", object_handles(kind, object).own);
	}
	add(words, part);
}

/* Adds how many objects of a kind use the object, and the number of the first. */
static void add_users(struct words *words, enum kind user, enum kind kind, const void *used)
{
	const struct store *store = object_context(used)->store;
	const struct context *context;
	uint32_t contexts = 0, count = 0;
	void *object, *first = NULL;

	while ((context = handles_next(&store->contexts, &contexts)))
		for (uint32_t at = 0; (object = handles_next(&context->handles[user], &at));)
			if (uses(user, object, kind, used) && !count++)
				first = object;
	if (!count)
		return;
	add_count(words, count, user == KIND_PD ? "parent domain" : kind_name(user));
	add(words, count == 1 ? " (" : " (first: ");
	add_number(words, user, first);
	add(words, ")");
}

const char *users_text(enum kind kind, const void *object)
{
	static _Thread_local char text[TEXT_BYTES];
	struct words words = {text, sizeof(text), 0};

	for (enum kind user = 0; user < KIND_CONTEXT; user++)
		add_users(&words, user, kind, object_root(kind, object));
	/* The program has overwritten the pointers in the structure of the user. */
	if (!words.used)
		add(&words, "other objects");
	return text;
}

const char *kinds_text(const uint32_t counts[KINDS], char *text, size_t size_bytes)
{
	struct words words = {text, size_bytes, 0};

	text[0] = '\0';
	for (enum kind kind = 0; kind < KIND_CONTEXT; kind++)
		if (counts[kind])
			add_count(&words, counts[kind], kind_name(kind));
	return text;
}
