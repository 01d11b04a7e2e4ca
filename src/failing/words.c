/* SPDX-License-Identifier: MIT */
/* The names of the calls that can fail. */
#include "src/failing/rules.h"

#include "src/base/count.h"

#include <string.h>

/*
 * Calls that only a rule with their name matches, beside those that end an object: they acknowledge, poll,
 * take an event, leave a group, or only read what the program has.
 */
static const enum layer_verb named_only[] = {
	LAYER_get_device_name,	  LAYER_get_device_index, LAYER_is_fork_initialized,
	LAYER_get_async_event,	  LAYER_get_cq_event,	  LAYER_poll_cq,
	LAYER_detach_mcast,	  LAYER_start_poll,	  LAYER_next_poll,
	LAYER_cm_leave_multicast, LAYER_cm_get_cm_event,  LAYER_cm_ack_cm_event,
};

static bool can_fail(enum layer_verb verb)
{
	switch (layer_verb_info(verb)->convention) {
	case LAYER_NOTHING:
	case LAYER_ANSWER:
	case LAYER_OPTIONAL:
		return false;
	default:
		return true;
	}
}

bool words_is_any(enum layer_verb verb)
{
	if (!can_fail(verb) || layer_verb_ends(verb))
		return false;
	for (unsigned int i = 0; i < COUNT(named_only); i++)
		if (named_only[i] == verb)
			return false;
	return true;
}

bool words_is_list(enum layer_verb verb)
{
	return verb == LAYER_post_send || verb == LAYER_post_recv || verb == LAYER_post_srq_recv;
}

bool words_find_call(const char *name, enum layer_verb *verb)
{
	for (int i = 0; i < LAYER_VERBS; i++)
		if (strcmp(layer_verb_info(i)->name, name) == 0 && can_fail(i)) {
			*verb = (enum layer_verb)i;
			return true;
		}
	return false;
}

const char *vb_fail_call_name(unsigned int index)
{
	for (int i = 0; i < LAYER_VERBS; i++)
		if (can_fail(i) && !index--)
			return layer_verb_info(i)->name;
	return NULL;
}

bool vb_fail_is_any(const char *call)
{
	enum layer_verb verb;

	return call && words_find_call(call, &verb) && words_is_any(verb);
}
