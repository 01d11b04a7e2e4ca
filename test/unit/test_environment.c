/* SPDX-License-Identifier: MIT */
#include "src/project/environment.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROJECT "test/data/infiniband.yml"

static const char *const variables[] = {
	VB_ENVIRONMENT_PROJECT,	  VB_ENVIRONMENT_DEVICES, VB_ENVIRONMENT_LINK_LAYER,
	VB_ENVIRONMENT_PROFILE,	  VB_ENVIRONMENT_QUIRKS,  VB_ENVIRONMENT_TRACE,
	VB_ENVIRONMENT_SEED,	  VB_ENVIRONMENT_CLOCK,	  VB_ENVIRONMENT_LOG,
	VB_ENVIRONMENT_WIRE,	  VB_ENVIRONMENT_WORLD,	  VB_ENVIRONMENT_TRACE_LIMIT,
	VB_ENVIRONMENT_LOG_LIMIT,
};

static struct vb_project *project;

static void clear(void)
{
	for (unsigned int i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}

void setUp(void)
{
	project = NULL;
	clear();
}

void tearDown(void)
{
	vb_project_free(project);
	clear();
}

static const struct vb_sim_config *load(void)
{
	struct vb_project_error error = {""};

	vb_project_free(project);
	project = vb_environment_load(&error);
	TEST_ASSERT_NOT_NULL_MESSAGE(project, error.text);
	return &project->sim;
}

static const struct vb_sim_config *load_with(const char *name, const char *value)
{
	setenv(name, value, 1);
	return load();
}

void test_nothing_set(void)
{
	const struct vb_sim_config *sim = load();

	TEST_ASSERT_EQUAL_UINT(2, sim->device_count);
	TEST_ASSERT_EQUAL_STRING("sim0", sim->devices[0].name);
	TEST_ASSERT_EQUAL_STRING("sim1", sim->devices[1].name);
	TEST_ASSERT_EQUAL_STRING("reset_removes_completions,sl_is_packet_type",
				 sim->devices[1].quirks);
	TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_REAL, sim->clock);
	TEST_ASSERT_FALSE(sim->seed_given);
	TEST_ASSERT_NULL(sim->trace);
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_SHARED, sim->devices[i].wire);
	TEST_ASSERT_EQUAL_STRING("", sim->world);
}

void test_a_new_world_is_named_once_for_all_programs(void)
{
	static const char made[] = VB_SIM_WORLD_NEW "-";
	const char *name;

	load_with(VB_ENVIRONMENT_WORLD, "ci-17");
	TEST_ASSERT_EQUAL_INT(0, vb_environment_settle_world(project));
	TEST_ASSERT_EQUAL_STRING("ci-17", getenv(VB_ENVIRONMENT_WORLD));
	load_with(VB_ENVIRONMENT_WORLD, VB_SIM_WORLD_NEW);
	TEST_ASSERT_EQUAL_INT(0, vb_environment_settle_world(project));
	name = getenv(VB_ENVIRONMENT_WORLD);
	TEST_ASSERT_EQUAL_INT(0, strncmp(name, made, strlen(made)));
	TEST_ASSERT_EQUAL_STRING(name, load()->world);
	TEST_ASSERT_EQUAL_INT(0, vb_environment_settle_world(project));
	TEST_ASSERT_EQUAL_STRING(project->sim.world, getenv(VB_ENVIRONMENT_WORLD));
}

void test_an_empty_variable_is_as_good_as_none(void)
{
	const struct vb_sim_config *sim;

	for (unsigned int i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		setenv(variables[i], "", 1);
	sim = load();
	TEST_ASSERT_EQUAL_UINT(2, sim->device_count);
	TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_REAL, sim->clock);
	TEST_ASSERT_FALSE(sim->seed_given);
	TEST_ASSERT_NULL(sim->trace);
	/* But for this one. */
	TEST_ASSERT_EQUAL_STRING("", sim->devices[0].quirks);
}

void test_log(void)
{
	load();
	TEST_ASSERT_EQUAL_STRING("", project->log);
	/* vb_log_open() expands %p: a child of fork() has a log of its own. */
	load_with(VB_ENVIRONMENT_LOG, "/l-%p.jsonl");
	TEST_ASSERT_EQUAL_STRING("/l-%p.jsonl", project->log);
}

void test_devices(void)
{
	TEST_ASSERT_EQUAL_UINT(1, load_with(VB_ENVIRONMENT_DEVICES, "1")->device_count);
	TEST_ASSERT_EQUAL_UINT(64, load_with(VB_ENVIRONMENT_DEVICES, "64")->device_count);
	TEST_ASSERT_EQUAL_STRING("sim63", project->sim.devices[63].name);
}

void test_what_all_devices_have(void)
{
	const struct vb_sim_config *sim;

	setenv(VB_ENVIRONMENT_LINK_LAYER, "infiniband", 1);
	setenv(VB_ENVIRONMENT_DEVICES, "3", 1);
	setenv(VB_ENVIRONMENT_QUIRKS, "reset_removes_completions,receives_flush_first", 1);
	sim = load_with(VB_ENVIRONMENT_PROFILE, "rxe-6.12");
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_INFINIBAND, sim->devices[i].link_layer);
		TEST_ASSERT_EQUAL_STRING("rxe-6.12", sim->devices[i].profile);
		TEST_ASSERT_EQUAL_STRING("reset_removes_completions,receives_flush_first",
					 sim->devices[i].quirks);
	}
}

void test_the_default_quirk_goes_with_the_default_profile_only(void)
{
	TEST_ASSERT_EQUAL_STRING("", load_with(VB_ENVIRONMENT_PROFILE, "spec")->devices[0].quirks);
	unsetenv(VB_ENVIRONMENT_PROFILE);
	TEST_ASSERT_EQUAL_STRING("", load_with(VB_ENVIRONMENT_PROJECT, PROJECT)->devices[0].quirks);
}

void test_a_project_lists_its_devices(void)
{
	const struct vb_sim_config *sim = load_with(VB_ENVIRONMENT_PROJECT, PROJECT);

	TEST_ASSERT_TRUE(sim->device_count > 0);
	TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_INFINIBAND, sim->devices[0].link_layer);
	/* Its clock is that of the tests. */
	TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_REAL, sim->clock);
	sim = load_with(VB_ENVIRONMENT_LINK_LAYER, "ethernet");
	TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_ETHERNET, sim->devices[0].link_layer);
}

void test_clock_and_seed(void)
{
	const struct vb_sim_config *sim;

	setenv(VB_ENVIRONMENT_CLOCK, "virtual", 1);
	sim = load_with(VB_ENVIRONMENT_SEED, "0");
	TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_VIRTUAL, sim->clock);
	TEST_ASSERT_TRUE(sim->seed_given && sim->seed == 0);
	TEST_ASSERT_TRUE(load_with(VB_ENVIRONMENT_SEED, "18446744073709551615")->seed ==
			 UINT64_MAX);
	TEST_ASSERT_TRUE(load_with(VB_ENVIRONMENT_SEED, "0xfF")->seed == 255);
}

/* A seed does not decide who sees the devices; a virtual clock does. */
void test_wires(void)
{
	const struct vb_sim_config *sim = load_with(VB_ENVIRONMENT_SEED, "7");

	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_SHARED, sim->devices[1].wire);
	sim = load_with(VB_ENVIRONMENT_CLOCK, "virtual");
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_MEMORY, sim->devices[0].wire);
	unsetenv(VB_ENVIRONMENT_CLOCK);
	setenv(VB_ENVIRONMENT_WORLD, "ci-17", 1);
	sim = load_with(VB_ENVIRONMENT_WIRE, "memory");
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_MEMORY, sim->devices[0].wire);
	TEST_ASSERT_EQUAL_STRING("ci-17", sim->world);
	sim = load_with(VB_ENVIRONMENT_WIRE, "udp");
	TEST_ASSERT_EQUAL_UINT(2, sim->device_count);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_UDP, sim->devices[1].wire);
	/* An address is of one device. */
	sim = load_with(VB_ENVIRONMENT_WIRE, "udp=192.0.2.1");
	TEST_ASSERT_EQUAL_UINT(1, sim->device_count);
	TEST_ASSERT_EQUAL_STRING("192.0.2.1", sim->devices[0].address);
}

/* The variable is stronger than the file, and the file is stronger than the default. */
void test_wires_of_a_project(void)
{
	const struct vb_sim_config *sim;

	sim = load_with(VB_ENVIRONMENT_PROJECT, "test/data/wires.yml");
	TEST_ASSERT_EQUAL_STRING("of-the-file", sim->world);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_SHARED, sim->devices[0].wire);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_MEMORY, sim->devices[1].wire);
	setenv(VB_ENVIRONMENT_WORLD, "other", 1);
	sim = load_with(VB_ENVIRONMENT_WIRE, "shared");
	TEST_ASSERT_EQUAL_STRING("other", sim->world);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_SHARED, sim->devices[1].wire);
}

void test_wires_that_are_refused(void)
{
	struct vb_project_error error = {""};

	setenv(VB_ENVIRONMENT_CLOCK, "virtual", 1);
	setenv(VB_ENVIRONMENT_WIRE, "shared", 1);
	TEST_ASSERT_NULL(vb_environment_load(&error));
	TEST_ASSERT_EQUAL_STRING(
		"VERBENA_CLOCK: device sim0 has the wire shared, and other processes "
		"cannot follow a virtual clock (take the real clock, or the wire "
		"memory)",
		error.text);
	unsetenv(VB_ENVIRONMENT_CLOCK);
	setenv(VB_ENVIRONMENT_DEVICES, "2", 1);
	setenv(VB_ENVIRONMENT_WIRE, "udp=eth0", 1);
	TEST_ASSERT_NULL(vb_environment_load(&error));
	TEST_ASSERT_EQUAL_STRING(
		"VERBENA_WIRE: 'udp=eth0' is the address of one device, and there are "
		"2 (give each device its own wire in project.yml, or take one "
		"device)",
		error.text);
}

void test_the_number_of_the_process_in_the_trace_s_name(void)
{
	char wanted[64];

	TEST_ASSERT_EQUAL_STRING("/t/a.pcap", load_with(VB_ENVIRONMENT_TRACE, "/t/a.pcap")->trace);
	snprintf(wanted, sizeof(wanted), "a-%ld-%ld%%q%%", (long)getpid(), (long)getpid());
	TEST_ASSERT_EQUAL_STRING(wanted, load_with(VB_ENVIRONMENT_TRACE, "a-%p-%p%q%")->trace);
}

void test_limits(void)
{
	static const struct {
		const char *text;
		uint64_t bytes_max, count_max;
	} rows[] = {
		{"100", 0, 100},       {"18446744073709551615", 0, UINT64_MAX},
		{"0", 0, 0},	       {"1M", 1 << 20, 0},
		{"1024K", 1 << 20, 0}, {"17179869183G", UINT64_C(17179869183) << 30, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vb_sim_config *sim =
			load_with(VB_ENVIRONMENT_TRACE_LIMIT, rows[i].text);

		TEST_ASSERT_EQUAL_UINT64(rows[i].bytes_max, sim->trace_bytes_max);
		TEST_ASSERT_EQUAL_UINT64(rows[i].count_max, sim->trace_packets_max);
		load_with(VB_ENVIRONMENT_LOG_LIMIT, rows[i].text);
		TEST_ASSERT_EQUAL_UINT64(rows[i].bytes_max, project->log_limit.bytes_max);
		TEST_ASSERT_EQUAL_UINT64(rows[i].count_max, project->log_limit.count_max);
	}
}

void test_limits_that_are_refused(void)
{
	static const char *const texts[] = {
		"99",	       "1023K", "1T",	"M",   "-1",
		"1m",	       "1MB",	"1.5M", " 1M", "18446744073709551616",
		"17179869184G"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct vb_project_error error = {""};
		char wanted[160];

		setenv(VB_ENVIRONMENT_TRACE_LIMIT, texts[i], 1);
		TEST_ASSERT_NULL(vb_environment_load(&error));
		snprintf(wanted, sizeof(wanted),
			 "VERBENA_TRACE_LIMIT: '%s' is not understood (a number of events or "
			 "packets "
			 "from 100 on, a size from 1M on, or 0 for no limit)",
			 texts[i]);
		TEST_ASSERT_EQUAL_STRING(wanted, error.text);
	}
}

void test_what_is_refused(void)
{
	static char long_text[2 * VB_SIM_QUIRKS_TEXT];
	static const struct {
		const char *name, *value, *message;
	} rows[] = {
		{VB_ENVIRONMENT_DEVICES, "0", "'0' is not a number from 1 to 64"},
		{VB_ENVIRONMENT_DEVICES, "65", "'65' is not a number from 1 to 64"},
		{VB_ENVIRONMENT_DEVICES, " 2", "' 2' is not a number from 1 to 64"},
		{VB_ENVIRONMENT_DEVICES, "2x", "'2x' is not a number from 1 to 64"},
		{VB_ENVIRONMENT_DEVICES, "-1", "'-1' is not a number from 1 to 64"},
		{VB_ENVIRONMENT_SEED, "18446744073709551616", "is not a number"},
		{VB_ENVIRONMENT_SEED, "010", "is not a number"},
		{VB_ENVIRONMENT_SEED, "0x", "is not a number"},
		{VB_ENVIRONMENT_LINK_LAYER, "Ethernet",
		 "is unknown (allowed: ethernet, infiniband)"},
		{VB_ENVIRONMENT_PROFILE, "rxe",
		 "is unknown (allowed: spec, rxe-6.1, rxe-6.12, mlx5, hostile)"},
		{VB_ENVIRONMENT_CLOCK, "reals", "is unknown (allowed: virtual, real)"},
		{VB_ENVIRONMENT_WIRE, "rdma",
		 "'rdma' is unknown (allowed: memory, shared, udp, udp=ADDRESS, udp=INTERFACE)"},
		{VB_ENVIRONMENT_WORLD, "a b",
		 "'a b' is not a name (1 to 31 letters, digits, '_', '-' and '.')"},
		{VB_ENVIRONMENT_QUIRKS, "none", "no quirk is called 'none'"},
		{VB_ENVIRONMENT_QUIRKS, "receives_flush_first,x,y", "no quirk is called 'x'"},
		{VB_ENVIRONMENT_QUIRKS, ",receives_flush_first", "no quirk is called ''"},
		{VB_ENVIRONMENT_QUIRKS, long_text, "longer than 255 bytes"},
	};

	memset(long_text, 'q', sizeof(long_text) - 1);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_project_error error = {""};

		setenv(rows[i].name, rows[i].value, 1);
		errno = 0;
		TEST_ASSERT_NULL_MESSAGE(vb_environment_load(&error), rows[i].value);
		TEST_ASSERT_EQUAL_INT_MESSAGE(EINVAL, errno, rows[i].value);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, rows[i].message), error.text);
		TEST_ASSERT_EQUAL_PTR(error.text, strstr(error.text, rows[i].name));
		unsetenv(rows[i].name);
	}
}

void test_a_project_that_cannot_be_taken(void)
{
	struct vb_project_error error = {""};

	setenv(VB_ENVIRONMENT_PROJECT, "none.yml", 1);
	TEST_ASSERT_NULL(vb_environment_load(&error));
	TEST_ASSERT_EQUAL_INT(ENOENT, errno);
	TEST_ASSERT_EQUAL_STRING("none.yml: No such file or directory", error.text);
	setenv(VB_ENVIRONMENT_PROJECT, PROJECT, 1);
	setenv(VB_ENVIRONMENT_DEVICES, "2", 1);
	TEST_ASSERT_NULL(vb_environment_load(&error));
	TEST_ASSERT_EQUAL_STRING(VB_ENVIRONMENT_DEVICES ": the project already lists its devices",
				 error.text);
}
