/* SPDX-License-Identifier: MIT */
/*
 * All wires of a world behind one way out: which wire each call of the engine, the clock and fork() gets to.
 * The wires are the test's own: `shared`, whose ports other processes have too, and `udp`.
 */
#include "backends/sim/wire/wire.h"

#include "sim/engine.h"
#include "sim/net/net.h"
#include "sim/object/device.h"
#include "unity.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED, UDP, WIRES };
enum { S0, S1, U0, U1, MEMORY, BEYOND, DEVICES = BEYOND };

struct fake {
	struct wire wire;
	const struct sim_device *devices; /* two */
	unsigned int calls;		  /* of the functions below */
	bool arrived, received, listened, closed;
	int error;
};

static struct wires wires;
static struct fake *fakes[WIRES];
static unsigned int closed;
static struct sim_device devices[DEVICES];
static struct sim_engine *engine;
static const struct sim_way_out *way;

/* --- the wires --- */

static struct fake *called(const void *arg)
{
	struct fake *fake = (struct fake *)(uintptr_t)arg;

	fake->calls++;
	return fake;
}

static bool fake_has(const struct wire *wire, const struct sim_device *device)
{
	const struct fake *fake = (const struct fake *)wire;

	return device == fake->devices || device == fake->devices + 1;
}

static bool fake_reaches(void *arg, struct sim_path *path)
{
	(void)path;
	return called(arg);
}

static unsigned int fake_room(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	(void)path;
	called(arg);
	return dest_qpn;
}

static bool fake_lags(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	(void)path;
	(void)dest_qpn;
	return called(arg);
}

static bool fake_send(void *arg, const struct sim_departure *departure)
{
	(void)departure;
	return called(arg);
}

static bool fake_has_members(void *arg, const struct sim_port *port)
{
	(void)port;
	return called(arg);
}

static void fake_joined(void *arg, const struct sim_device *device, uint32_t memberships)
{
	(void)device;
	(void)memberships;
	called(arg);
}

static int fake_join(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	(void)device;
	(void)group;
	return called(arg)->error;
}

static void fake_leave(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	(void)device;
	(void)group;
	called(arg);
}

static enum sim_presence fake_find(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	(void)path;
	(void)dest_qpn;
	called(arg);
	return SIM_PRESENCE_OTHER;
}

static enum vb_reason fake_barrier(void *arg, const struct sim_path *path)
{
	(void)path;
	called(arg);
	return VB_WHY_UDP_LOOPBACK;
}

static bool fake_arrived(const struct wire *wire)
{
	return called(wire)->arrived;
}

static bool fake_receive(struct wire *wire)
{
	return called(wire)->received;
}

static void fake_flush(struct wire *wire)
{
	called(wire);
}

static void fake_listen(struct wire *wire, bool on)
{
	called(wire)->listened = on;
}

static int fake_resume(struct wire *wire)
{
	return called(wire)->error;
}

static void fake_close(struct wire *wire)
{
	closed++;
	free(wire);
}

static const struct wire functions = {
	.way = {.reaches = fake_reaches,
		.room = fake_room,
		.lags = fake_lags,
		.send = fake_send,
		.has_members = fake_has_members,
		.joined = fake_joined,
		.join = fake_join,
		.leave = fake_leave,
		.find = fake_find,
		.barrier = fake_barrier},
	.has = fake_has,
	.arrived = fake_arrived,
	.receive = fake_receive,
	.flush = fake_flush,
	.listen = fake_listen,
	.forked = fake_flush,
	.resume = fake_resume,
	.close = fake_close,
};

void setUp(void)
{
	const struct sim_host host = {.arg = NULL};

	memset(&wires, 0, sizeof(wires));
	memset(devices, 0, sizeof(devices));
	closed = 0;
	TEST_ASSERT_EQUAL_INT(0, sim_engine_create(&host, 1, &engine));
	for (unsigned int i = 0; i < DEVICES; i++)
		devices[i].ports[0].device = &devices[i];
	for (unsigned int i = 0; i < WIRES; i++) {
		fakes[i] = calloc(1, sizeof(*fakes[i]));
		fakes[i]->wire = functions;
		fakes[i]->wire.way.arg = fakes[i];
		fakes[i]->wire.shares_ports = i == SHARED;
		fakes[i]->devices = &devices[i == SHARED ? S0 : U0];
		wires_add(&wires, engine, &fakes[i]->wire);
	}
	way = engine->net->way;
	TEST_ASSERT_NOT_NULL(way);
}

void tearDown(void)
{
	wires_close(&wires);
	sim_engine_destroy(engine);
}

/* Exactly the wire was called, `count` times; WIRES: none was. */
static void expect_called(unsigned int expected, unsigned int count)
{
	for (unsigned int i = 0; i < WIRES; i++) {
		TEST_ASSERT_EQUAL_UINT(i == expected ? count : 0, fakes[i]->calls);
		fakes[i]->calls = 0;
	}
}

/* --- which wire a packet takes --- */

/*
 * A port that the engine knows is reached by its own wire, and only if other processes have QPs there and
 * the source has a wire. A port that it does not know is reached by the source's wire.
 */
static const unsigned char by[DEVICES][DEVICES + 1] = {
	[S0] = {SHARED, SHARED, WIRES, WIRES, WIRES, SHARED},
	[S1] = {SHARED, SHARED, WIRES, WIRES, WIRES, SHARED},
	[U0] = {SHARED, SHARED, WIRES, WIRES, WIRES, UDP},
	[U1] = {SHARED, SHARED, WIRES, WIRES, WIRES, UDP},
	[MEMORY] = {WIRES, WIRES, WIRES, WIRES, WIRES, WIRES},
};

void test_a_packet_takes_the_wire_of_its_port(void)
{
	for (unsigned int from = 0; from < DEVICES; from++)
		for (unsigned int to = 0; to <= BEYOND; to++) {
			const unsigned int wire = by[from][to];
			struct sim_path path = {
				.source = &devices[from].ports[0],
				.dest = to == BEYOND ? NULL : &devices[to].ports[0],
			};
			const struct sim_departure departure = {.source = path.source,
								.dest = path.dest};
			const bool some = wire != WIRES;

			TEST_ASSERT_EQUAL_INT(some, way->send(way->arg, &departure));
			TEST_ASSERT_EQUAL_UINT(some ? 7 : UINT_MAX, way->room(way->arg, &path, 7));
			TEST_ASSERT_EQUAL_INT(some, way->lags(way->arg, &path, 7));
			TEST_ASSERT_EQUAL_INT(some ? SIM_PRESENCE_OTHER : SIM_PRESENCE_NOBODY,
					      way->find(way->arg, &path, 7));
			expect_called(wire, 4);
		}
}

/* An address that no port has is asked of the source's wire. */
void test_an_address_is_asked_of_the_sources_wire(void)
{
	for (unsigned int from = 0; from < DEVICES; from++) {
		const unsigned int wire = by[from][BEYOND];
		struct sim_path path = {.source = &devices[from].ports[0]};
		const bool some = wire != WIRES;

		TEST_ASSERT_EQUAL_INT(some, way->reaches(way->arg, &path));
		TEST_ASSERT_EQUAL_INT(some ? VB_WHY_UDP_LOOPBACK : VB_WHY_NONE,
				      way->barrier(way->arg, &path));
		expect_called(wire, 2);
	}
}

void test_groups_are_of_the_devices_wire(void)
{
	static const union ibv_gid group = {.raw = {0xff}};

	for (unsigned int at = 0; at < DEVICES; at++) {
		const unsigned int wire = by[at][BEYOND];

		TEST_ASSERT_EQUAL_INT(wire != WIRES,
				      way->has_members(way->arg, &devices[at].ports[0]));
		way->joined(way->arg, &devices[at], 3);
		TEST_ASSERT_EQUAL_INT(0, way->join(way->arg, &devices[at], &group));
		way->leave(way->arg, &devices[at], &group);
		expect_called(wire, 4);
	}
	fakes[UDP]->error = ENOBUFS;
	TEST_ASSERT_EQUAL_INT(ENOBUFS, way->join(way->arg, &devices[U1], &group));
	TEST_ASSERT_EQUAL_INT(0, way->join(way->arg, &devices[S1], &group));
}

/* A wire may leave out what it has nothing to say to. */
void test_functions_that_a_wire_leaves_out(void)
{
	static const union ibv_gid group = {.raw = {0xff}};
	struct sim_path path = {.source = &devices[S0].ports[0]};

	fakes[SHARED]->wire.way.barrier = NULL;
	fakes[SHARED]->wire.way.lags = NULL;
	fakes[SHARED]->wire.way.join = NULL;
	fakes[SHARED]->wire.way.leave = NULL;
	TEST_ASSERT_EQUAL_INT(VB_WHY_NONE, way->barrier(way->arg, &path));
	TEST_ASSERT_FALSE(way->lags(way->arg, &path, 7));
	TEST_ASSERT_EQUAL_INT(0, way->join(way->arg, &devices[S0], &group));
	way->leave(way->arg, &devices[S0], &group);
	expect_called(WIRES, 0);
}

/* --- all wires at once --- */

void test_what_has_come_to_any_wire(void)
{
	TEST_ASSERT_FALSE(wires_have_arrivals(&wires));
	TEST_ASSERT_FALSE(wires_receive(&wires));
	for (unsigned int i = 0; i < WIRES; i++) {
		fakes[i]->arrived = fakes[i]->received = true;
		TEST_ASSERT_TRUE(wires_have_arrivals(&wires));
		fakes[SHARED]->calls = fakes[UDP]->calls = 0;
		/* One that has got something does not keep the others waiting. */
		TEST_ASSERT_TRUE(wires_receive(&wires));
		TEST_ASSERT_EQUAL_UINT(1, fakes[SHARED]->calls);
		TEST_ASSERT_EQUAL_UINT(1, fakes[UDP]->calls);
		fakes[i]->arrived = fakes[i]->received = false;
	}
	/* A wire that cannot say may have something. */
	fakes[UDP]->wire.arrived = NULL;
	TEST_ASSERT_TRUE(wires_have_arrivals(&wires));
}

static void expect_all_called(void)
{
	for (unsigned int i = 0; i < WIRES; i++) {
		TEST_ASSERT_EQUAL_UINT(1, fakes[i]->calls);
		fakes[i]->calls = 0;
	}
}

void test_each_wire_is_asked(void)
{
	wires_flush(&wires);
	expect_all_called();
	wires_listen(&wires, true);
	expect_all_called();
	TEST_ASSERT_TRUE(fakes[SHARED]->listened && fakes[UDP]->listened);
	wires_listen(&wires, false);
	expect_all_called();
	TEST_ASSERT_FALSE(fakes[SHARED]->listened || fakes[UDP]->listened);
	wires_forked(&wires);
	expect_all_called();
	TEST_ASSERT_EQUAL_INT(0, wires_resume(&wires));
	expect_all_called();
}

/* The first error is the call's; wires behind it are left out. */
void test_a_wire_that_cannot_resume(void)
{
	fakes[UDP]->error = EADDRINUSE;
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, wires_resume(&wires));
	expect_all_called();
	fakes[SHARED]->error = EACCES;
	TEST_ASSERT_EQUAL_INT(EACCES, wires_resume(&wires));
	expect_called(SHARED, 1);
}

void test_the_way_out_ends_with_the_wires(void)
{
	wires_close(&wires);
	TEST_ASSERT_EQUAL_UINT(WIRES, closed);
	TEST_ASSERT_NULL(wires.first);
	TEST_ASSERT_NULL(engine->net->way);
	wires_close(&wires);
	TEST_ASSERT_EQUAL_UINT(WIRES, closed);
}
