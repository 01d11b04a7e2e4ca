/* SPDX-License-Identifier: MIT */
/*
 * Two processes transfer data and check each byte; see usage() below. Plain libibverbs: it runs under
 * `verbena run`, and on an adapter.
 */
#include "test/pairs/content.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 16, LIMIT_S = 300 };

static void usage(FILE *out)
{
	fprintf(out,
		"usage: content [OPTION...] [SCENARIO...]\n"
		"Runs scenarios, by default all, each with a second process.\n"
		"  -s SEED     decides the data [the process number]\n"
		"  -e          sleep until completions come [poll]\n"
		"  -l          packets get lost: UC and UD messages may be missing\n"
		"  -b BYTES    the largest message [16777216]\n"
		"  -a          the second process uses the second adapter [both use the first, as\n"
		"              always in the scenario targets: a domain is of one adapter]\n"
		"Scenarios:");
	for (unsigned int i = 0; i < transfer_scenario_count; i++)
		fprintf(out, " %s", transfer_scenarios[i].name);
	for (unsigned int i = 0; i < life_scenario_count; i++)
		if (life_scenarios[i].first)
			fprintf(out, " %s", life_scenarios[i].name);
	fprintf(out, "\n");
}

static const struct scenario *find(const char *name)
{
	for (unsigned int i = 0; i < transfer_scenario_count; i++)
		if (!strcmp(name, transfer_scenarios[i].name))
			return &transfer_scenarios[i];
	for (unsigned int i = 0; i < life_scenario_count; i++)
		if (!strcmp(name, life_scenarios[i].name))
			return &life_scenarios[i];
	return NULL;
}

struct peer scenario_start(const struct settings *settings, const char *name)
{
	const char *arguments[ARGUMENTS_MAX];
	int count = 0;

	for (const char *const *word = settings->arguments; *word; word++)
		arguments[count++] = *word;
	arguments[count++] = name;
	arguments[count] = NULL;
	return peer_start(arguments);
}

static void run(const struct settings *settings, const struct scenario *scenario)
{
	struct peer peer = scenario_start(settings, scenario->name);
	uint64_t began_ns = now_ns();

	peer_name = scenario->name;
	scenario->first(settings, &peer);
	if (peer.pid)
		peer_end(&peer);
	printf("ok   %s, %.2f s\n", scenario->name, (double)(now_ns() - began_ns) / 1e9);
	fflush(stdout);
}

static void run_all(const struct settings *settings)
{
	for (unsigned int i = 0; i < transfer_scenario_count; i++)
		run(settings, &transfer_scenarios[i]);
	for (unsigned int i = 0; i < life_scenario_count; i++)
		if (life_scenarios[i].first)
			run(settings, &life_scenarios[i]);
}

/* The words that give a peer the same settings. */
static const char *const *words(const struct settings *settings, bool across)
{
	static char seed[32], bytes[32];
	static const char *all[ARGUMENTS_MAX] = {"-s", seed, "-b", bytes};
	int count = 4;

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)settings->seed);
	snprintf(bytes, sizeof(bytes), "%zu", settings->largest);
	if (settings->events)
		all[count++] = "-e";
	if (settings->lossy)
		all[count++] = "-l";
	if (across)
		all[count++] = "-a";
	return all;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"peer", required_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct settings settings = {.seed = (uint64_t)getpid(), .largest = 16 << 20};
	struct peer peer = {.fd = -1};
	bool across = false;
	int c;

	while ((c = getopt_long(argc, argv, "s:elb:ah", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			peer.fd = atoi(optarg);
			break;
		case 's':
			settings.seed = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			settings.largest = strtoull(optarg, NULL, 0);
			break;
		case 'e':
			settings.events = true;
			break;
		case 'l':
			settings.lossy = true;
			break;
		case 'a':
			across = true;
			break;
		default:
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	for (int i = optind; i < argc; i++)
		if (!find(argv[i]))
			fail("there is no scenario '%s'; see content -h", argv[i]);
	alarm(LIMIT_S);
	settings.arguments = words(&settings, across);
	if (peer.fd >= 0) {
		settings.role = 1;
		settings.adapter = across;
		peer_name = argv[optind];
		find(argv[optind])->second(&settings, &peer);
		return 0;
	}
	printf("seed %llu\n", (unsigned long long)settings.seed);
	for (int i = optind; i < argc; i++)
		run(&settings, find(argv[i]));
	if (optind == argc)
		run_all(&settings);
	return 0;
}
