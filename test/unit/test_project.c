/* SPDX-License-Identifier: MIT */
/* Run in the top folder of the project, where its own project.yml is. */
#include "src/project/config.h"
#include "src/project/project.h"
#include "test/support/scarce.h"
#include "unity.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD ":verbena:\n"

static struct vb_project_error error;
static struct vb_project *project;

void setUp(void)
{
	error.text[0] = '\0';
	project = NULL;
}

void tearDown(void)
{
	vb_project_free(project);
	unsetenv("VERBENA_PROJECT");
}

static void parse(const char *text)
{
	vb_project_free(project);
	project = vb_project_parse("p.yml", text, strlen(text), &error);
	TEST_ASSERT_NOT_NULL_MESSAGE(project, error.text);
	TEST_ASSERT_EQUAL_STRING_MESSAGE("", error.text, text);
}

static void refuse(const char *text, const char *message)
{
	errno = 0;
	TEST_ASSERT_NULL_MESSAGE(vb_project_parse("p.yml", text, strlen(text), &error), text);
	TEST_ASSERT_EQUAL_INT_MESSAGE(EINVAL, errno, text);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(message, error.text, text);
}

static void assert_gid(const char *address, const union ibv_gid *gid)
{
	union ibv_gid wanted;

	TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET6, address, wanted.raw));
	TEST_ASSERT_EQUAL_MEMORY(wanted.raw, gid->raw, 16);
}

void test_nothing_said_is_the_default_world(void)
{
	static const char *const texts[] = {
		"",
		"\n\n# only a comment\n",
		"---\n",
		"--- ~\n",
		":verbena:",
		":verbena: {}\n",
		":project:\n  :x: [1, 2]\n:other: 3\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		parse(texts[i]);
		TEST_ASSERT_EQUAL_STRING("p.yml", project->file);
		TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_VIRTUAL, project->sim.clock);
		TEST_ASSERT_FALSE(project->sim.seed_given);
		TEST_ASSERT_NULL(project->sim.trace);
		TEST_ASSERT_EQUAL_UINT(0, project->sim.device_count);
		TEST_ASSERT_EQUAL_UINT(0, project->sim.link_count);
		TEST_ASSERT_EQUAL_UINT(0, project->suite_count);
	}
}

void test_every_key_of_the_world(void)
{
	parse(HEAD "  :clock: :real\n  :seed: 18446744073709551615\n"
		   "  :trace: 'a b.pcap'\n  :log: 'a %p.jsonl'\n  :suites: [rc, cq-2]\n"
		   "  :trace_limit: 10000\n  :log_limit: 3G\n");
	TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_REAL, project->sim.clock);
	TEST_ASSERT_TRUE(project->sim.seed_given);
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, project->sim.seed);
	TEST_ASSERT_EQUAL_STRING("a b.pcap", project->sim.trace);
	TEST_ASSERT_EQUAL_STRING("a %p.jsonl", project->log);
	TEST_ASSERT_EQUAL_UINT64(10000, project->sim.trace_packets_max);
	TEST_ASSERT_EQUAL_UINT64(0, project->sim.trace_bytes_max);
	TEST_ASSERT_EQUAL_UINT64(UINT64_C(3) << 30, project->log_limit.bytes_max);
	TEST_ASSERT_EQUAL_UINT64(0, project->log_limit.count_max);
}

void test_suites_keep_order_and_line(void)
{
	parse(HEAD "  suites:\n    - rc\n\n    - cq\n");
	TEST_ASSERT_EQUAL_UINT(2, project->suite_count);
	TEST_ASSERT_EQUAL_STRING("rc", project->suites[0].name);
	TEST_ASSERT_EQUAL_UINT(3, project->suites[0].line);
	TEST_ASSERT_EQUAL_STRING("cq", project->suites[1].name);
	TEST_ASSERT_EQUAL_UINT(5, project->suites[1].line);
}

void test_keys_without_colon_and_hexadecimal_numbers(void)
{
	parse("verbena:\n  clock: virtual\n  seed: 0xfF\n  trace: t.pcap\n");
	TEST_ASSERT_EQUAL_UINT64(255, project->sim.seed);
	TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_VIRTUAL, project->sim.clock);
}

void test_every_key_of_a_device(void)
{
	const struct vb_sim_device_config *device;

	parse(HEAD "  devices:\n"
		   "    - name: left\n"
		   "      ports: 2\n"
		   "      link_layer: infiniband\n"
		   "      mtu: 1024\n"
		   "      addresses: [192.168.1.1, 'fd00:1::5']\n"
		   "      pkeys: [0xffff, 0x7fff, 32769]\n"
		   "      profile: spec\n"
		   "    - {name: right, gids: [192.168.1.2]}\n"
		   "    - :name: plain\n");
	TEST_ASSERT_EQUAL_UINT(3, project->sim.device_count);
	device = &project->sim.devices[0];
	TEST_ASSERT_EQUAL_STRING("left", device->name);
	TEST_ASSERT_EQUAL_STRING("spec", device->profile);
	TEST_ASSERT_EQUAL_UINT(2, device->ports);
	TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_INFINIBAND, device->link_layer);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, device->mtu);
	TEST_ASSERT_EQUAL_UINT(2, device->gid_count);
	assert_gid("::ffff:192.168.1.1", &device->gids[0]);
	assert_gid("fd00:1::5", &device->gids[1]);
	TEST_ASSERT_EQUAL_UINT(3, device->pkey_count);
	TEST_ASSERT_EQUAL_HEX16(0xffff, device->pkeys[0]);
	TEST_ASSERT_EQUAL_HEX16(0x7fff, device->pkeys[1]);
	TEST_ASSERT_EQUAL_HEX16(0x8001, device->pkeys[2]);
	device = &project->sim.devices[1];
	TEST_ASSERT_EQUAL_STRING("right", device->name);
	assert_gid("::ffff:192.168.1.2", &device->gids[0]);
	device = &project->sim.devices[2];
	TEST_ASSERT_EQUAL_STRING("plain", device->name);
	TEST_ASSERT_EQUAL_STRING("spec", device->profile);
	TEST_ASSERT_EQUAL_UINT(1, device->ports);
	TEST_ASSERT_EQUAL_INT(IBV_LINK_LAYER_ETHERNET, device->link_layer);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, device->mtu);
	TEST_ASSERT_EQUAL_UINT(0, device->gid_count);
	TEST_ASSERT_EQUAL_UINT(0, device->pkey_count);
}

void test_wires_of_the_world_and_of_devices(void)
{
	const struct vb_sim_device_config *devices;

	parse(HEAD "  world: ci-17\n  wire: :shared\n  devices:\n"
		   "    - {name: a}\n    - {name: b, wire: udp=192.0.2.1}\n"
		   "    - {name: c, wire: udp}\n    - {name: d, wire: memory}\n");
	devices = project->sim.devices;
	TEST_ASSERT_EQUAL_STRING("ci-17", project->sim.world);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_SHARED, devices[0].wire);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_UDP, devices[1].wire);
	TEST_ASSERT_EQUAL_STRING("192.0.2.1", devices[1].address);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_UDP, devices[2].wire);
	TEST_ASSERT_EQUAL_STRING("", devices[2].address);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_MEMORY, devices[3].wire);
	for (unsigned int i = 0; i < 4; i++)
		TEST_ASSERT_TRUE(project->wire_given[i]);
	TEST_ASSERT_EQUAL_PTR(&devices[0], vb_project_wired(project));
}

/* Without a list, the wire is of the default devices. */
void test_a_wire_without_devices(void)
{
	parse(HEAD "  wire: udp\n");
	TEST_ASSERT_EQUAL_UINT(2, project->sim.device_count);
	TEST_ASSERT_EQUAL_INT(VB_SIM_WIRE_UDP, project->sim.devices[1].wire);
	parse(HEAD "  devices: [{name: a}, {name: b, wire: memory}]\n");
	TEST_ASSERT_FALSE(project->wire_given[0]);
	TEST_ASSERT_TRUE(project->wire_given[1]);
	TEST_ASSERT_NULL(vb_project_wired(project));
}

void test_wires_that_are_refused(void)
{
	refuse(HEAD "  wire: infiniband\n",
	       "p.yml:2: wire: 'infiniband' is unknown (allowed: memory, shared, udp, udp=ADDRESS, "
	       "udp=INTERFACE)");
	refuse(HEAD "  wire: shared=eth0\n", "p.yml:2: wire: 'shared=eth0' is unknown (allowed: "
					     "memory, shared, udp, udp=ADDRESS, "
					     "udp=INTERFACE)");
	refuse(HEAD "  devices: [{name: a, wire: udp=}]\n",
	       "p.yml:2: devices[0].wire: the address is 0 bytes long (1 to 63 are allowed)");
	refuse(HEAD "  wire: udp=eth0\n",
	       "p.yml:2: wire: gives 2 devices one address (give each device its own wire)");
	refuse(HEAD "  world: a/b\n",
	       "p.yml:2: world: 'a/b' is not a name (letters, digits, '_', '-' and '.')");
}

void test_every_mtu(void)
{
	static const struct {
		const char *text;
		enum ibv_mtu mtu;
	} rows[] = {
		{HEAD "  devices: [{name: a, mtu: 256}]", IBV_MTU_256},
		{HEAD "  devices: [{name: a, mtu: 512}]", IBV_MTU_512},
		{HEAD "  devices: [{name: a, mtu: 1024}]", IBV_MTU_1024},
		{HEAD "  devices: [{name: a, mtu: 2048}]", IBV_MTU_2048},
		{HEAD "  devices: [{name: a, mtu: 4096}]", IBV_MTU_4096},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		parse(rows[i].text);
		TEST_ASSERT_EQUAL_INT(rows[i].mtu, project->sim.devices[0].mtu);
	}
}

void test_a_profile_or_link_alone_means_the_default_devices(void)
{
	parse(HEAD "  profile: spec\n");
	TEST_ASSERT_EQUAL_UINT(2, project->sim.device_count);
	TEST_ASSERT_EQUAL_STRING("sim0", project->sim.devices[0].name);
	TEST_ASSERT_EQUAL_STRING("sim1", project->sim.devices[1].name);
	TEST_ASSERT_EQUAL_STRING("spec", project->sim.devices[1].profile);
	parse(HEAD "  links: [{between: [sim1, sim0]}]\n");
	TEST_ASSERT_EQUAL_UINT(2, project->sim.device_count);
	TEST_ASSERT_EQUAL_UINT(1, project->sim.link_count);
	TEST_ASSERT_EQUAL_STRING("sim1", project->sim.links[0].a);
	TEST_ASSERT_EQUAL_STRING("sim0", project->sim.links[0].b);
	TEST_ASSERT_EQUAL_UINT64(0, project->sim.links[0].delay_ns);
	TEST_ASSERT_EQUAL_UINT64(0, project->sim.links[0].bits_per_second);
}

void test_units_of_delays(void)
{
	static const struct {
		const char *delay;
		uint64_t ns;
	} rows[] = {
		{"0", 0},
		{"250", 250},
		{"'250'", 250},
		{"7ns", 7},
		{"10us", 10000},
		{"1.5us", 1500},
		{"0.001us", 1},
		{"1.000us", 1000},
		{"1ms", 1000000},
		{"2 ms", 2000000},
		{"0.000001ms", 1},
		{"3s", UINT64_C(3000000000)},
		{"3600s", UINT64_C(3600000000000)},
		{"3600000000000", UINT64_C(3600000000000)},
		{"1.000000001s", 1000000001},
		{"1.0000000010000000000000000000s", 1000000001},
		{"1.0", 1},
	};
	char text[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), HEAD "  links: [{between: [sim0, sim1], delay: %s}]",
			 rows[i].delay);
		parse(text);
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(rows[i].ns, project->sim.links[0].delay_ns,
						 rows[i].delay);
	}
}

void test_units_of_rates(void)
{
	static const struct {
		const char *rate;
		uint64_t bits_per_second;
	} rows[] = {
		{"1", 1},
		{"9bps", 9},
		{"10Kbps", 10000},
		{"2.5Mbps", 2500000},
		{"100Gbps", UINT64_C(100000000000)},
	};
	char text[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), HEAD "  links: [{between: [sim0, sim1], rate: %s}]",
			 rows[i].rate);
		parse(text);
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(rows[i].bits_per_second,
						 project->sim.links[0].bits_per_second,
						 rows[i].rate);
	}
}

void test_delays_and_rates_that_are_refused(void)
{
	static const char units[] = " (nanoseconds, or a number with ns, us, ms or s)";
	static const struct {
		const char *value, *message;
		bool plain; /* the allowed units follow */
	} rows[] = {
		{"delay: fast", "delay: 'fast' is not understood", true},
		{"delay: -1", "delay: '-1' is not understood", true},
		{"delay: 1.us", "delay: '1.us' is not understood", true},
		{"delay: .5us", "delay: '.5us' is not understood", true},
		{"delay: 1 min", "delay: '1 min' is not understood", true},
		{"delay: us", "delay: 'us' is not understood", true},
		{"delay: 10usx", "delay: '10usx' is not understood", true},
		{"delay: ''", "delay: '' is not understood", true},
		{"delay: 0.1", "delay: '0.1' is finer than 1 ns", false},
		{"delay: 0.0001us", "delay: '0.0001us' is finer than 1 ns", false},
		{"delay: 3601s", "delay: '3601s' is too large (up to 3600 s)", false},
		{"delay: 18446744073709551616", "delay: '18446744073709551616' is too large", true},
		{"delay: 18446744074s", "delay: '18446744074s' is too large", true},
		{"delay: [1]",
		 "delay: is a list (nanoseconds, or a number with ns, us, ms or s is wanted)",
		 false},
		{"rate: 0", "rate: is 0 (leave the key out for no limit)", false},
		{"rate: 1gbps",
		 "rate: '1gbps' is not understood (bits a second, or a number with Kbps, Mbps or "
		 "Gbps)",
		 false},
	};
	char text[128], message[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), HEAD "  links:\n  - between: [sim0, sim1]\n    %s\n",
			 rows[i].value);
		snprintf(message, sizeof(message), "p.yml:4: links[0].%s%s", rows[i].message,
			 rows[i].plain ? units : "");
		refuse(text, message);
	}
}

void test_wrong_keys_and_values_name_line_and_key(void)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{HEAD "  :clokc: real\n", "p.yml:2: clokc: unknown key (allowed: clock, seed, "
					  "trace, trace_limit, log, log_limit, suites, profile, "
					  "wire, world, devices, links, faults, failures, events)"},
		{HEAD "  clock: real\n  :clock: real\n",
		 "p.yml:3: clock: given twice (first in line 2)"},
		{HEAD "  seed:\n", "p.yml:2: seed: has no value (give one or leave the key out)"},
		{HEAD "  clock: ~\n",
		 "p.yml:2: clock: has no value (give one or leave the key out)"},
		{HEAD "  [a]: b\n", "p.yml:2: :verbena:: a key is a list (a name is wanted)"},
		{HEAD "  - clock\n", "p.yml:1: :verbena:: is a list (a mapping is wanted)"},
		{":verbena: 3\n", "p.yml:1: :verbena:: is a text (a mapping is wanted)"},
		{"\n:verbena: {}\n:a: b\n:verbena: {}\n",
		 "p.yml:4: :verbena:: given twice (first in line 2)"},
		{"- 1\n",
		 "p.yml:1: :verbena:: the file is not a mapping (sections such as :verbena: "
		 "are wanted)"},
		{"word\n",
		 "p.yml:1: :verbena:: the file is not a mapping (sections such as :verbena: "
		 "are wanted)"},
		{HEAD "  clock: wall\n",
		 "p.yml:2: clock: 'wall' is unknown (allowed: virtual, real)"},
		{HEAD "  clock: [real]\n", "p.yml:2: clock: is a list (a word is wanted)"},
		{HEAD "  seed: -1\n",
		 "p.yml:2: seed: '-1' is out of range (0 to 18446744073709551615)"},
		{HEAD "  seed: 18446744073709551616\n",
		 "p.yml:2: seed: '18446744073709551616' is out of range (0 to "
		 "18446744073709551615)"},
		{HEAD "  seed: 0x\n",
		 "p.yml:2: seed: '0x' is out of range (0 to 18446744073709551615)"},
		{HEAD "  seed: 010\n",
		 "p.yml:2: seed: '010' begins with 0 (write it without, or 0x...)"},
		{HEAD "  seed: 1.5\n",
		 "p.yml:2: seed: '1.5' is not a number (0 to 18446744073709551615)"},
		{HEAD "  seed: '1'\n", "p.yml:2: seed: is a text (a number is wanted)"},
		{HEAD "  seed: {a: 1}\n", "p.yml:2: seed: is a mapping (a number is wanted)"},
		{HEAD "  trace: ''\n", "p.yml:2: trace: 0 bytes long (1 to 4095 are allowed)"},
		{HEAD "  trace: \"a\\0b\"\n", "p.yml:2: trace: has a control character"},
		{HEAD "  log: ''\n", "p.yml:2: log: 0 bytes long (1 to 4095 are allowed)"},
		{HEAD "  log_limit: 99\n",
		 "p.yml:2: log_limit: '99' is not understood (a number of events or packets from "
		 "100 on, a size from 1M on, or 0 for no limit)"},
		{HEAD "  trace_limit: [1M]\n",
		 "p.yml:2: trace_limit: is a list (a text is wanted)"},
		{HEAD "  trace: [a]\n", "p.yml:2: trace: is a list (a text is wanted)"},
		{HEAD "  profile: rxe\n", "p.yml:2: profile: 'rxe' is unknown (allowed: spec, "
					  "rxe-6.1, rxe-6.12, mlx5, hostile)"},
		{HEAD "  suites: rc\n", "p.yml:2: suites: is a text (a list is wanted)"},
		{HEAD "  suites: []\n", "p.yml:2: suites: 0 suites (1 to 64 are allowed)"},
		{HEAD "  suites:\n  - rc\n  - rc\n", "p.yml:4: suites[1]: 'rc' is given twice"},
		{HEAD "  suites: ['r c']\n",
		 "p.yml:2: suites[0]: 'r c' is not a name (letters, digits, '_', '-' and '.')"},
		{HEAD "  suites: [~]\n", "p.yml:2: suites[0]: is nothing (a text is wanted)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i].text, rows[i].message);
}

void test_wrong_devices_name_line_and_key(void)
{
	static const struct {
		const char *device, *message;
	} rows[] = {
		{"{}", "4: devices[1]: has no name"},
		{"sim", "4: devices[1]: is a text (a mapping is wanted)"},
		{"{name: a}", "4: devices[1].name: 'a' is already the name of another device"},
		{"{name: 'b c'}",
		 "4: devices[1].name: 'b c' is not a name (letters, digits, '_', '-' and '.')"},
		{"{name: a123456789012345678901234567890b}",
		 "4: devices[1].name: 32 bytes long (1 to 31 are allowed)"},
		{"{name: b, port: 1}",
		 "4: devices[1].port: unknown key (allowed: name, ports, link_layer, mtu, "
		 "addresses, gids, pkeys, profile, quirks, wire)"},
		{"{name: b, ports: 0}", "4: devices[1].ports: '0' is out of range (1 to 4)"},
		{"{name: b, ports: 5}", "4: devices[1].ports: '5' is out of range (1 to 4)"},
		{"{name: b, link_layer: roce}",
		 "4: devices[1].link_layer: 'roce' is unknown (allowed: ethernet, infiniband)"},
		{"{name: b, mtu: 1500}",
		 "4: devices[1].mtu: '1500' is unknown (allowed: 256, 512, 1024, 2048, 4096)"},
		{"{name: b, gids: [x]}",
		 "4: devices[1].gids[0]: 'x' is not an address (IPv4 or IPv6)"},
		{"{name: b, gids: [10.1.0.1]}",
		 "4: devices[1].gids[0]: is already an address of device a"},
		{"{name: b, gids: ['fd01::1', 'fd01:0::1']}",
		 "4: devices[1].gids[1]: is already an address of device b"},
		{"{name: b, gids: [224.0.0.1]}",
		 "4: devices[1].gids[0]: 224.0.0.1 is not a host's address"},
		{"{name: b, gids: [0.0.0.0]}",
		 "4: devices[1].gids[0]: 0.0.0.0 is not a host's address"},
		{"{name: b, gids: ['::']}", "4: devices[1].gids[0]: :: is not a host's address"},
		{"{name: b, gids: ['ff02::1']}",
		 "4: devices[1].gids[0]: ff02::1 is not a host's address"},
		{"{name: b, gids: []}", "4: devices[1].gids: 0 addresses (1 to 16 are allowed)"},
		{"{name: b, gids: [10.1.0.2], addresses: [10.1.0.3]}",
		 "4: devices[1].gids: is another name of 'addresses' (give one of the two)"},
		{"{name: b, pkeys: [0]}",
		 "4: devices[1].pkeys[0]: '0' is out of range (1 to 65535)"},
		{"{name: b, pkeys: [0x10000]}",
		 "4: devices[1].pkeys[0]: '0x10000' is out of range (1 to 65535)"},
		{"{name: b, pkeys: [0x8000]}",
		 "4: devices[1].pkeys[0]: 0x8000 is not a partition (its low 15 bits are 0)"},
		{"{name: b, profile: none}", "4: devices[1].profile: 'none' is unknown (allowed: "
					     "spec, rxe-6.1, rxe-6.12, mlx5, hostile)"},
		{"{name: b, gids: [10.0.0.3]}\n  - name: c",
		 "4: devices[1]: has the address that device c takes by default (give that device "
		 "its own)"},
	};
	char text[256], message[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text),
			 HEAD "  devices:\n  - {name: a, gids: [10.1.0.1]}\n  - %s\n",
			 rows[i].device);
		snprintf(message, sizeof(message), "p.yml:%s", rows[i].message);
		refuse(text, message);
	}
	refuse(HEAD "  devices: []\n", "p.yml:2: devices: 0 devices (1 to 64 are allowed)");
}

void test_too_many_devices(void)
{
	char text[4096] = HEAD "  devices:\n";

	for (int i = 0; i <= VB_SIM_DEVICES_MAX; i++)
		sprintf(text + strlen(text), "  - {name: d%d}\n", i);
	refuse(text, "p.yml:2: devices: 65 devices (1 to 64 are allowed)");
}

void test_wrong_links_name_line_and_key(void)
{
	static const struct {
		const char *link, *message;
	} rows[] = {
		{"{delay: 1}", "5: links[0]: names no devices (between: [a, b])"},
		{"{between: [a]}", "5: links[0].between: 1 devices (2 to 2 are allowed)"},
		{"{between: a}", "5: links[0].between: is a text (a list is wanted)"},
		{"{between: [a, d]}", "5: links[0].between[1]: there is no device 'd'"},
		{"{between: [a, a]}",
		 "5: links[0].between: joins a to itself (a device always reaches itself)"},
		{"{between: [a, c]}",
		 "5: links[0].between: joins a and c, whose link layers differ"},
		{"{between: [a, b], dealy: 1}",
		 "5: links[0].dealy: unknown key (allowed: between, delay, rate)"},
		{"{between: [a, b]}\n  - {between: [b, a]}",
		 "6: links[1].between: b and a are already joined"},
	};
	char text[256], message[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text),
			 HEAD "  devices:\n"
			      "   [{name: a}, {name: b}, {name: c, link_layer: infiniband}]\n"
			      "  links:\n  - %s\n",
			 rows[i].link);
		snprintf(message, sizeof(message), "p.yml:%s", rows[i].message);
		refuse(text, message);
	}
}

void test_anchors_aliases_and_merge_keys(void)
{
	parse(":base: &base\n  :mtu: 512\n  ports: 2\n"
	      ":verbena:\n"
	      "  devices:\n"
	      "    - {<<: *base, name: a}\n"
	      "    - {name: b, mtu: 256, <<: [*base, {profile: spec, mtu: 4096}]}\n"
	      "  links:\n    - &l {between: &ends [a, b]}\n");
	TEST_ASSERT_EQUAL_INT(IBV_MTU_512, project->sim.devices[0].mtu);
	TEST_ASSERT_EQUAL_UINT(2, project->sim.devices[0].ports);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_256, project->sim.devices[1].mtu);
	TEST_ASSERT_EQUAL_UINT(2, project->sim.devices[1].ports);
	refuse(":base: &base\n  :mut: 512\n:verbena:\n  devices: [{<<: *base, name: a}]\n",
	       "p.yml:2: devices[0].mut: unknown key (allowed: name, ports, link_layer, mtu, "
	       "addresses, gids, pkeys, profile, quirks, wire)");
	refuse(":verbena: {<<: 3}\n", "p.yml:1: :verbena:: is a text (a mapping is wanted)");
	refuse(":verbena: {clock: *none}\n", "p.yml:1: not YAML: found undefined alias");
}

void test_an_alias_to_what_it_stands_in_ends(void)
{
	refuse(":verbena: &v\n  <<: *v\n",
	       "p.yml:1: :verbena:: merge keys (<<) nested deeper than 8");
	refuse(":verbena:\n  suites: &s [*s]\n",
	       "p.yml:2: suites[0]: is a list (a text is wanted)");
	refuse(":verbena:\n  devices: &d [*d]\n",
	       "p.yml:2: devices[0]: is a list (a mapping is wanted)");
}

/* Errors of libyaml have its words; ours are the file, the line and that it is one line. */
static void refuse_somehow(const char *text, size_t length_bytes, const char *beginning)
{
	errno = 0;
	TEST_ASSERT_NULL(vb_project_parse("p.yml", text, length_bytes, &error));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(strchr(error.text, '\n'));
	TEST_ASSERT_EQUAL_MEMORY(beginning, error.text, strlen(beginning));
}

void test_what_is_no_yaml(void)
{
	static const char *const texts[] = {
		":verbena:\n  clock: [real\n",
		":verbena:\n\tclock: real\n",
		":verbena:\n  a: b: c\n",
		":a: 'open\n",
		"%YAML 9.9\n---\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refuse_somehow(texts[i], strlen(texts[i]), "p.yml:");
}

void test_binary_garbage(void)
{
	unsigned char bytes[512];
	uint32_t x = 12345; /* the seed */

	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			x = x * 1664525 + 1013904223;
			bytes[i] = x >> 24;
		}
		bytes[0] = 0x80; /* neither UTF-8 nor a byte order mark */
		refuse_somehow((char *)bytes, sizeof(bytes), "p.yml: not a text file: ");
	}
}

/* Every text that a valid file can be cut to is read or refused, never worse. */
void test_every_beginning_of_a_file(void)
{
	static const char text[] =
		":verbena:\n  :clock: real\n  :devices: [{name: a, gids: [10.0.0.9]}, {name: b}]\n"
		"  :links:\n  - {between: [a, b], delay: 10us}\n";

	for (size_t length = 0; length < sizeof(text); length++) {
		project = vb_project_parse("p.yml", text, length, &error);
		TEST_ASSERT_EQUAL_INT(project != NULL, error.text[0] == '\0');
		vb_project_free(project);
		project = NULL;
	}
}

static void refuse_nested(const char *piece, size_t count)
{
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	TEST_ASSERT_NOT_NULL(file);
	fputs(HEAD "  seed: ", file);
	for (size_t i = 0; i < count; i++)
		fputs(piece, file);
	TEST_ASSERT_EQUAL_INT(0, fclose(file));
	refuse_somehow(text, length, "p.yml:");
	free(text);
}

void test_very_deep_nesting(void)
{
	refuse_nested("[", 20000);
	refuse_nested("{a: ", 20000);
	refuse_nested("- ", 20000);
}

void test_a_file_too_large(void)
{
	char *text = malloc(VB_PROJECT_SIZE_MAX + 1);

	TEST_ASSERT_NOT_NULL(text);
	memset(text, ' ', VB_PROJECT_SIZE_MAX + 1);
	refuse_somehow(text, VB_PROJECT_SIZE_MAX + 1, "p.yml: larger than 1048576 bytes");
	project = vb_project_parse("p.yml", text, VB_PROJECT_SIZE_MAX, &error);
	free(text);
	TEST_ASSERT_NOT_NULL_MESSAGE(project, error.text);
}

void test_long_keys_and_values_are_cut_in_messages(void)
{
	char text[8192] = HEAD "  ";

	memset(text + strlen(text), 'k', 900);
	strcat(text, ": 1\n");
	refuse_somehow(text, strlen(text),
		       "p.yml:2: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...: unknown");
	strcpy(text, HEAD "  clock: ");
	memset(text + strlen(text), 'v', 7000);
	refuse_somehow(text, strlen(text), "p.yml:2: clock: 'vvvv");
	TEST_ASSERT_LESS_THAN(200, strlen(error.text));
}

/* --- which file is read --- */

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	TEST_ASSERT_NOT_NULL(file);
	TEST_ASSERT_TRUE(fputs(text, file) >= 0);
	TEST_ASSERT_EQUAL_INT(0, fclose(file));
}

/* In a folder of its own: named by argument, by VERBENA_PROJECT, by its place, not at all. */
void test_which_file_is_read(void)
{
	char folder[] = "/tmp/verbena-project-XXXXXX", before[4096];

	TEST_ASSERT_NOT_NULL(getcwd(before, sizeof(before)));
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	TEST_ASSERT_EQUAL_INT(0, chdir(folder));
	project = vb_project_load(NULL, &error);
	TEST_ASSERT_NOT_NULL(project);
	TEST_ASSERT_EQUAL_STRING("", project->file);
	vb_project_free(project);
	write_file("project.yml", HEAD "  seed: 1\n");
	write_file("two.yml", HEAD "  seed: 2\n");
	write_file("three.yml", HEAD "  seed: 3\n");
	project = vb_project_load(NULL, &error);
	TEST_ASSERT_EQUAL_UINT64(1, project->sim.seed);
	vb_project_free(project);
	setenv("VERBENA_PROJECT", "two.yml", 1);
	project = vb_project_load(NULL, &error);
	TEST_ASSERT_EQUAL_UINT64(2, project->sim.seed);
	vb_project_free(project);
	project = vb_project_load("three.yml", &error);
	TEST_ASSERT_EQUAL_UINT64(3, project->sim.seed);
	TEST_ASSERT_EQUAL_STRING("three.yml", project->file);
	vb_project_free(project);
	TEST_ASSERT_NULL(project = vb_project_load("four.yml", &error));
	TEST_ASSERT_EQUAL_INT(ENOENT, errno);
	TEST_ASSERT_EQUAL_STRING("four.yml: No such file or directory", error.text);
	TEST_ASSERT_NULL(project = vb_project_load(".", &error));
	TEST_ASSERT_EQUAL_INT(EISDIR, errno);
	unlink("project.yml");
	unlink("two.yml");
	unlink("three.yml");
	TEST_ASSERT_EQUAL_INT(0, chdir(before));
	TEST_ASSERT_EQUAL_INT(0, rmdir(folder));
}

/* --- without memory --- */

/* Loads or parses a project whose allocation number `good` fails. True if it needs no more. */
static bool loads_with(long good, bool loads)
{
	static const char text[] = HEAD "  seed: 2\n";
	int err;

	scarce_after(good, true);
	scarce.on = true;
	project = loads ? vb_project_load("project.yml", &error)
			: vb_project_parse("p.yml", text, sizeof(text) - 1, &error);
	err = errno;
	scarce.on = false;
	if (project) {
		vb_project_free(project);
		project = NULL;
		return !scarce.failures;
	}
	TEST_ASSERT_EQUAL_INT_MESSAGE(ENOMEM, err, error.text);
	if (!loads)
		TEST_ASSERT_EQUAL_STRING("p.yml: no memory", error.text);
	return false;
}

void test_every_allocation_fails_in_turn(void)
{
	if (!SCARCE)
		TEST_IGNORE_MESSAGE("the sanitizer has its own malloc()");
	for (int loads = 0; loads < 2; loads++) {
		long good = 0;

		while (!loads_with(good, loads))
			good++;
		/* The project, and more for libyaml. */
		TEST_ASSERT_GREATER_THAN(5, good);
	}
}

/* --- the project's own file --- */

void test_the_own_project_file_says_the_defaults(void)
{
	project = vb_project_load("project.yml", &error);
	TEST_ASSERT_NOT_NULL_MESSAGE(project, error.text);
	TEST_ASSERT_EQUAL_INT(VB_SIM_CLOCK_VIRTUAL, project->sim.clock);
	TEST_ASSERT_EQUAL_UINT64(1, project->sim.seed);
	TEST_ASSERT_EQUAL_UINT(2, project->sim.device_count);
	TEST_ASSERT_EQUAL_STRING("sim0", project->sim.devices[0].name);
	TEST_ASSERT_EQUAL_STRING("sim1", project->sim.devices[1].name);
	TEST_ASSERT_EQUAL_UINT64(0, project->sim.links[0].delay_ns);
}

/*
 * Ceedling itself is in no Debian package; scripts/test --all runs it where it is found. This is what can
 * be held without Ceedling.
 */
void test_the_own_project_file_is_what_ruby_and_ceedling_expect(void)
{
	static const char ruby[] =
		"ruby -ryaml -e '"
		"y = YAML.safe_load(File.read(\"project.yml\"), permitted_classes: [Symbol]);"
		"exit(2) unless y.values.none? { |v| v.is_a?(Array) && !v.empty? };"
		"exit(3) unless y[:project][:build_root].is_a?(String);"
		"exit(4) unless y[:project][:test_threads].is_a?(Integer);"
		"exit(5) unless y[:paths][:test] == [\"+:test/unit/**\"];"
		"make = y[:command_hooks][:pre_test_build][:executable];"
		"exit(6) unless File.executable?(make);"
		"exit(7) unless y[:libraries][:test].all? { |l| "
		"File.read(make).include?(l.delete_prefix(\"build/ceedling/library/\")) };"
		"exit(8) unless y[:plugins][:enabled].is_a?(Array);"
		"exit(9) unless y[:defines][:test].is_a?(Array);"
		"exit(10) unless y[:verbena].is_a?(Hash)'";
	static const char python[] =
		"/usr/bin/python3 -c '\n"
		"import sys\n"
		"names = [l[:-1] for l in open(\"project.yml\").read().split(chr(10))"
		" if l.startswith(\":\")]\n"
		"sys.exit(not {\":project:\", \":paths:\", \":defines:\", \":libraries:\", "
		"\":plugins:\", \":verbena:\"} <= {n + \":\" for n in names})'";
	bool has_ruby = system("command -v ruby >/dev/null 2>&1") == 0;

	TEST_ASSERT_EQUAL_INT(0, system(has_ruby ? ruby : python));
}
