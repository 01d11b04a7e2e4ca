/* SPDX-License-Identifier: MIT */
/* The table of service IDs in a shared world: who has them, and who takes a message to QP 1. */
#include "backends/sim/wire/shared_requests.h"
#include "backends/sim/wire/shared_services.h"
#include "sim/net/gsi.h"
#include "sim/net/service_address.h"
#include "test/unit/shared_world.h"

#include <errno.h>
#include <string.h>

#define TCP UINT64_C(0x0000000001060000)

static const uint8_t any[16];
static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
static const uint8_t there[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};

static struct segment a, b, of_child;

void setUp(void)
{
	name_world();
	attach(&a);
	attach(&b);
}

void tearDown(void)
{
	places_leave(&a);
	places_leave(&b);
	TEST_ASSERT_FALSE(world_exists());
}

static segment_id server_of(struct segment *segment, uint64_t service_id, const uint8_t address[16])
{
	struct sim_gsi_target target = {
		.kind = SIM_GSI_SERVICE, .service_id = service_id, .has_address = true};

	memcpy(target.address, address, sizeof(target.address));
	return services_owner(segment, &target);
}

void test_a_service_has_one_owner(void)
{
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 5, here, 0));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, services_reserve(&b, TCP + 5, here, 0));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, services_reserve(&b, TCP + 5, here, SIM_SERVICE_SHARED));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, services_reserve(&b, TCP + 5, any, 0));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 5, there, 0));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 6, any, 0));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, services_reserve(&a, TCP + 6, here, 0));
	services_unreserve(&a, TCP + 5, here);
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 5, here, 0));
	/* Another has the service ID: nothing is taken back. */
	services_unreserve(&a, TCP + 5, here);
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, services_reserve(&a, TCP + 5, here, 0));
}

void test_a_listener_excludes_those_that_share(void)
{
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 5, any, SIM_SERVICE_SHARED));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 5, here, SIM_SERVICE_SHARED));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, services_listen(&a, TCP + 5, any, true));
	services_unreserve(&b, TCP + 5, here);
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 5, any, true));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL,
			      services_reserve(&b, TCP + 5, here, SIM_SERVICE_SHARED));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 5, any, false));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 5, here, SIM_SERVICE_SHARED));
	services_unreserve(&a, TCP + 5, any);
	TEST_ASSERT_EQUAL_INT(0, services_listen(&b, TCP + 5, here, true));
}

void test_a_listener_for_each_family(void)
{
	static const uint8_t any_ipv4[16] = {[10] = 0xff, [11] = 0xff};
	static const uint8_t ipv6[16] = {0xfd, [15] = 1};
	struct segment third;

	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 5, any_ipv4, SIM_SERVICE_AFONLY));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, services_reserve(&b, TCP + 5, any, 0));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 5, any, SIM_SERVICE_AFONLY));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 5, any_ipv4, true));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&b, TCP + 5, any, true));
	attach(&third);
	TEST_ASSERT_TRUE(server_of(&third, TCP + 5, here) == a.id);
	TEST_ASSERT_TRUE(server_of(&third, TCP + 5, ipv6) == b.id);
	places_leave(&third);
}

/* SIM_SERVICE_UNIQUE is of the moment of the reservation: the listener excludes no other family. */
void test_a_listener_at_a_port_that_was_unique(void)
{
	static const uint8_t any_ipv4[16] = {[10] = 0xff, [11] = 0xff};

	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 5, any_ipv4,
						  SIM_SERVICE_AFONLY | SIM_SERVICE_UNIQUE));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 5, any, SIM_SERVICE_AFONLY));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 5, any_ipv4, true));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&b, TCP + 5, any, true));
}

void test_a_request_finds_its_listener(void)
{
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 5, here, 0));
	TEST_ASSERT_TRUE(server_of(&b, TCP + 5, here) == 0);
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 5, here, true));
	TEST_ASSERT_TRUE(server_of(&b, TCP + 5, here) == a.id);
	TEST_ASSERT_TRUE(server_of(&b, TCP + 5, there) == 0);
	TEST_ASSERT_TRUE(server_of(&b, TCP + 4, here) == 0);
	/* The engine has looked at its own listeners. */
	TEST_ASSERT_TRUE(server_of(&a, TCP + 5, here) == 0);
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 5, here, false));
	TEST_ASSERT_TRUE(server_of(&b, TCP + 5, here) == 0);
	services_unreserve(&a, TCP + 5, here);
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 5, any, 0));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 5, any, true));
	TEST_ASSERT_TRUE(server_of(&b, TCP + 5, there) == a.id);
}

void test_a_communication_finds_its_process(void)
{
	struct sim_gsi_target target = {.kind = SIM_GSI_COMMUNICATION};
	uint32_t block;
	uint16_t generation;

	TEST_ASSERT_TRUE(blocks_claim(&a, 0, SIM_NUMBERS_COMMUNICATION, &block, &generation));
	target.communication_id = 0xfffc0000u | (block * SIM_BLOCK_PLACES + 255);
	TEST_ASSERT_TRUE(services_owner(&b, &target) == a.id);
	TEST_ASSERT_TRUE(services_owner(&a, &target) == 0);
	target.communication_id += 1;
	TEST_ASSERT_TRUE(services_owner(&b, &target) == 0);
}

static segment_id taker_of(struct segment *segment, uint32_t communication_id)
{
	const struct sim_gsi_target target = {.kind = SIM_GSI_REQUEST,
					      .communication_id = communication_id};

	return services_owner(segment, &target);
}

void test_a_request_finds_its_taker(void)
{
	struct segment third;
	uint32_t block, id;
	uint16_t generation;

	attach(&third);
	TEST_ASSERT_TRUE(blocks_claim(&a, 0, SIM_NUMBERS_COMMUNICATION, &block, &generation));
	id = 0xfffc0000u | (block * SIM_BLOCK_PLACES + 255);
	TEST_ASSERT_TRUE(taker_of(&a, id) == 0);
	requests_take(&b, a.id, id, true);
	TEST_ASSERT_TRUE(taker_of(&a, id) == b.id);
	TEST_ASSERT_TRUE(taker_of(&a, id - 1) == 0);
	/* A later ID of the same place. */
	TEST_ASSERT_TRUE(taker_of(&a, id + (1u << 18)) == 0);
	/* The taker of an earlier ID takes no other entry back; neither does another process. */
	requests_take(&b, a.id, id + (1u << 18), false);
	requests_take(&third, a.id, id, false);
	TEST_ASSERT_TRUE(taker_of(&a, id) == b.id);
	/* The ID is of another process than the sender, or of none. */
	requests_take(&third, b.id, id, true);
	requests_take(&third, a.id, id + SIM_BLOCK_PLACES, true);
	TEST_ASSERT_TRUE(taker_of(&a, id) == b.id);
	TEST_ASSERT_TRUE(taker_of(&a, id + SIM_BLOCK_PLACES) == 0);
	requests_take(&b, a.id, id, false);
	TEST_ASSERT_TRUE(taker_of(&a, id) == 0);
	requests_take(&third, a.id, id, true);
	TEST_ASSERT_TRUE(taker_of(&a, id) == third.id);
	places_leave(&third);
	TEST_ASSERT_TRUE(taker_of(&a, id) == 0);
}

/* As many ports as a machine gives to its clients. */
void test_many_services(void)
{
	for (unsigned int port = 0; port < 65536; port++)
		TEST_ASSERT_EQUAL_INT(0, services_reserve(port % 2 ? &a : &b, TCP + port,
							  port % 3 ? any : here, 0));
	for (unsigned int port = 0; port < 65536; port++)
		TEST_ASSERT_EQUAL_INT(port % 3 ? EADDRNOTAVAIL : EADDRINUSE,
				      services_reserve(port % 2 ? &b : &a, TCP + port, here, 0));
	TEST_ASSERT_EQUAL_INT(ENOMEM, services_reserve(&a, TCP + 65536 * 11, any, 0));
	for (unsigned int port = 0; port < 65536; port++)
		services_unreserve(port % 2 ? &a : &b, TCP + port, port % 3 ? any : here);
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 65536 * 11, any, 0));
}

static int attach_and_listen(void)
{
	return attach_with(&of_child, "devices\n") ||
	       services_reserve(&of_child, TCP + 9, any, 0) ||
	       services_listen(&of_child, TCP + 9, any, SIM_SERVICE_SHARED);
}

/* A killed process has no services: a request to it is refused, and others may have the port. */
void test_services_of_a_killed_process(void)
{
	pid_t child = child_begin(attach_and_listen);

	TEST_ASSERT_TRUE(server_of(&a, TCP + 9, here) != 0);
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, services_reserve(&a, TCP + 9, here, 0));
	child_kill(child);
	TEST_ASSERT_TRUE(server_of(&a, TCP + 9, here) == 0);
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 9, here, 0));
	services_unreserve(&a, TCP + 9, here);
	/* Nobody has asked before: the reservation itself finds out. */
	child = child_begin(attach_and_listen);
	child_kill(child);
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 9, any, 0));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 9, any, true));
	TEST_ASSERT_TRUE(server_of(&b, TCP + 9, here) == a.id);
}

void test_services_of_a_process_that_leaves(void)
{
	struct segment c;

	attach(&c);
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&c, TCP + 9, any, 0));
	places_leave(&c);
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 9, any, 0));
}

/* A request that names no IP address goes to a listener of InfiniBand, wherever it listens. A request with an IP address
 * goes there, too, unless another process listens at that address. */
void test_requests_without_an_ip_address(void)
{
	const struct sim_gsi_target target = {.kind = SIM_GSI_SERVICE, .service_id = TCP + 5};

	TEST_ASSERT_EQUAL_UINT64(0, services_owner(&a, &target));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&b, TCP + 5, there, SIM_SERVICE_INFINIBAND));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&b, TCP + 5, there, true));
	TEST_ASSERT_EQUAL_UINT64(b.id, services_owner(&a, &target));
	TEST_ASSERT_EQUAL_UINT64(b.id, server_of(&a, TCP + 5, here));
	TEST_ASSERT_EQUAL_INT(0, services_reserve(&a, TCP + 6, here, 0));
	TEST_ASSERT_EQUAL_INT(0, services_listen(&a, TCP + 6, here, true));
	/* Its process rejects the request. */
	TEST_ASSERT_EQUAL_UINT64(
		a.id, services_owner(&b, &(struct sim_gsi_target){.kind = SIM_GSI_SERVICE,
								  .service_id = TCP + 6}));
}
