/* SPDX-License-Identifier: MIT */
/* The names, conventions and parameters of the verbs, read once from the rows of verbs.def and
 * cm.def. */
#include "src/layer/passage.h"

#include "src/base/count.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

/* text: the parameters as the row has them, such as "(struct ibv_pd *pd)". */
static const struct {
	const char *name;
	enum layer_convention convention;
	const char *text;
} rows[LAYER_VERBS] = {
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	[LAYER_##name] = {#name, LAYER_##convention, #parameters},
#include <verbena/verbs.def>
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	[LAYER_cm_##name] = {"cm_" #name, LAYER_##convention, #parameters},
#include <verbena/cm.def>
	[LAYER_wr_start] = {"wr_start", LAYER_NOTHING, "(struct ibv_qp_ex *qp)"},
	[LAYER_wr_complete] = {"wr_complete", LAYER_ERRNO,
			       "(struct ibv_qp_ex *qp, struct ibv_send_wr *wr)"},
	[LAYER_wr_abort] = {"wr_abort", LAYER_NOTHING, "(struct ibv_qp_ex *qp)"},
	[LAYER_start_poll] = {"start_poll", LAYER_ERRNO,
			      "(struct ibv_cq_ex *cq, struct ibv_wc *wc)"},
	[LAYER_next_poll] = {"next_poll", LAYER_ERRNO, "(struct ibv_cq_ex *cq, struct ibv_wc *wc)"},
	[LAYER_end_poll] = {"end_poll", LAYER_NOTHING, "(struct ibv_cq_ex *cq)"},
};

static struct layer_parameter parameters[LAYER_VERBS][LAYER_ARGUMENTS_MAX];
static struct layer_verb_info infos[LAYER_VERBS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void copy(char *to, size_t to_bytes, const char *from, size_t length)
{
	if (length >= to_bytes)
		length = to_bytes - 1;
	memcpy(to, from, length);
	to[length] = '\0';
}

/* Reads "uint8_t eth_mac[6]", of length characters: the name is the last word outside the brackets.
 * An array is a pointer to its elements. */
static void read_parameter(struct layer_parameter *parameter, const char *text, size_t length)
{
	const char *bracket = memchr(text, '[', length);
	size_t end = bracket ? (size_t)(bracket - text) : length, begin;

	while (end && isspace((unsigned char)text[end - 1]))
		end--;
	begin = end;
	while (begin && (isalnum((unsigned char)text[begin - 1]) || text[begin - 1] == '_'))
		begin--;
	copy(parameter->name, sizeof(parameter->name), text + begin, end - begin);
	while (begin && isspace((unsigned char)text[begin - 1]))
		begin--;
	copy(parameter->type, sizeof(parameter->type) - 2, text, begin);
	if (bracket)
		strcat(parameter->type, " *");
}

/* Reads "(type name, type name)" or "(void)". Returns the number of parameters. */
static unsigned int read_parameters(struct layer_parameter *into, const char *text)
{
	const char *end = text + strlen(text) - 1, *at = text + 1;
	unsigned int count = 0;

	if (strcmp(text, "(void)") == 0)
		return 0;
	while (at < end && count < LAYER_ARGUMENTS_MAX) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;

		read_parameter(&into[count++], at, (size_t)(stop - at));
		at = stop + 1;
		while (at < end && isspace((unsigned char)*at))
			at++;
	}
	return count;
}

static void read_all(void)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		infos[i] = (struct layer_verb_info){
			.name = rows[i].name,
			.convention = rows[i].convention,
			.parameter_count = read_parameters(parameters[i], rows[i].text),
			.parameters = parameters[i],
		};
}

enum layer_convention layer_convention_of(enum layer_verb verb)
{
	return rows[verb].convention;
}

const struct layer_verb_info *layer_verb_info(enum layer_verb verb)
{
	pthread_once(&once, read_all);
	return (size_t)verb < COUNT(infos) ? &infos[verb] : NULL;
}
