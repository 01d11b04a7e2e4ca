/* SPDX-License-Identifier: MIT */
#include "src/project/wire.h"

#include "src/base/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *vb_project_wire_name(unsigned int index)
{
	static const char *const names[] = {
		[VB_SIM_WIRE_MEMORY] = "memory",
		[VB_SIM_WIRE_SHARED] = "shared",
		[VB_SIM_WIRE_UDP] = "udp",
		[VB_SIM_WIRE_UDP + 1] = NULL,
	};

	return names[index];
}

bool wire_read(const char *text, struct vb_project_wire *wire, char *message, size_t size_bytes)
{
	const char *equals = strchr(text, '=');
	char word[16];
	int index;

	/* A word that is too long is cut, which makes it unknown, too. */
	snprintf(word, sizeof(word), "%.*s",
		 equals && equals - text < 15 ? (int)(equals - text) : 15, text);
	index = vb_words_find(vb_project_wire_name, word);
	*wire = (struct vb_project_wire){.given = true};
	if (index < 0 || (equals && index != VB_SIM_WIRE_UDP)) {
		snprintf(message, size_bytes,
			 "'%.80s' is unknown (allowed: memory, shared, udp, udp=ADDRESS, "
			 "udp=INTERFACE)",
			 text);
		return false;
	}
	wire->wire = (enum vb_sim_wire)index;
	if (equals && (!equals[1] || strlen(equals + 1) >= sizeof(wire->address))) {
		snprintf(message, size_bytes,
			 "the address is %zu bytes long (1 to %zu are allowed)", strlen(equals + 1),
			 sizeof(wire->address) - 1);
		return false;
	}
	snprintf(wire->address, sizeof(wire->address), "%s", equals ? equals + 1 : "");
	return true;
}

bool wire_config(const struct config *config, const struct config_value *value,
		 const struct config_key *key)
{
	char text[VB_SIM_ADDRESS_MAX + 8], message[256];
	const char *word = text;

	if (!config_text(config, value, &(struct config_key){.into = text, .max = sizeof(text)}))
		return false;
	/* A word may have a leading colon, as a symbol of Ruby. */
	if (text[0] == ':')
		word++;
	return wire_read(word, key->into, message, sizeof(message)) ||
	       config_fail(config, value, "%s", message);
}

void wire_give(const struct vb_project_wire *wire, struct vb_sim_device_config *device)
{
	device->wire = wire->wire;
	memcpy(device->address, wire->address, sizeof(device->address));
}

bool wire_is_world(const char *name)
{
	size_t length = 0;

	while (isalnum((unsigned char)name[length]) ||
	       (name[length] && strchr("_-.", name[length])))
		length++;
	return length && length < VB_SIM_NAME_MAX && !name[length];
}
