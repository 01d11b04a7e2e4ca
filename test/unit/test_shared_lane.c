/* SPDX-License-Identifier: MIT */
/* Lanes of the wire `shared` (sim/object/lane.h): they carry the packets of a connection as long as its QPN leads
 * to the same process, and leave the rest to the network. */
#include "backends/sim/wire/shared_private.h"
#include "test/unit/shared_ends.h"

#include <limits.h>

#define EPOCH 7u

/* Short packets of a lane are written by this function alone. */
size_t __wrap_sim_packet_write_bare(const struct sim_packet *packet, sim_copy_fn *copy,
				    uint8_t *bytes, bool *readable);
size_t __wrap_sim_packet_write_bare(const struct sim_packet *packet, sim_copy_fn *copy,
				    uint8_t *bytes, bool *readable)
{
	(void)copy;
	memset(bytes, packet->opcode, packet->payload_bytes);
	*readable = packet->payload_bytes;
	return packet->payload_bytes;
}

static struct end a, b;
static struct sim_path path;
static struct sim_lane lane;

static bool find_lane(uint32_t qpn)
{
	path = path_from(&a);
	path.route = one_route;
	if (!a.wire->way.lane(a.wire->way.arg, &path, qpn, &lane))
		return false;
	lane.epoch = EPOCH;
	return true;
}

void setUp(void)
{
	one_route = (struct sim_route){.udp_source_port = 0xc123, .hop_limit = 64};
	route_unreadable = false;
	on_arrival = NULL;
	name_world();
	open_end(&a);
	open_end(&b);
	TEST_ASSERT_TRUE(find_lane(b.qpn));
}

void tearDown(void)
{
	close_end(&a);
	close_end(&b);
	TEST_ASSERT_FALSE(world_exists());
}

static unsigned int room(void)
{
	return lane.ops->room(&lane);
}

static bool send_by_lane(size_t bytes, uint8_t value)
{
	const struct sim_packet packet = {.opcode = value, .payload_bytes = (uint32_t)bytes};

	return lane.ops->send(&lane, &path, &packet);
}

static uint32_t train_bytes(void)
{
	return lane.ops->train_bytes(&lane, &path);
}

static bool send_train(size_t bytes, uint8_t value, unsigned int count)
{
	const struct sim_packet train = {.opcode = value, .payload_bytes = (uint32_t)bytes};

	return lane.ops->send_train(&lane, &path, &train, count);
}

static void expect_arrival(size_t bytes, uint8_t value, bool bare)
{
	const unsigned int before = b.arrived;

	flush(&a);
	receive(&b);
	TEST_ASSERT_EQUAL_UINT(before + 1, b.arrived);
	TEST_ASSERT_EQUAL_UINT(bytes, b.bytes);
	for (size_t i = 0; i < bytes; i++)
		TEST_ASSERT_EQUAL_HEX8(value, b.last[i]);
	TEST_ASSERT_EQUAL_UINT(2, b.port);
	TEST_ASSERT_TRUE(b.device == &b.devices[0]);
	TEST_ASSERT_EQUAL_INT(bare, b.bare);
}

void test_a_lane_carries_short_and_long_packets(void)
{
	TEST_ASSERT_TRUE(room() > 0);
	TEST_ASSERT_TRUE(send_by_lane(100, 7));
	expect_arrival(100, 7, false);
	TEST_ASSERT_TRUE(send_by_lane(64, 8));
	expect_arrival(64, 8, true);
	TEST_ASSERT_TRUE(send_by_lane(4096, 9));
	expect_arrival(4096, 9, true);
	TEST_ASSERT_TRUE(send_by_lane(64, 10));
	expect_arrival(64, 10, true);
}

void test_a_lane_carries_trains_once_its_route_is_known(void)
{
	TEST_ASSERT_EQUAL_UINT32(0, train_bytes());
	TEST_ASSERT_TRUE(send_by_lane(100, 7));
	TEST_ASSERT_EQUAL_UINT32(SIM_TRAIN_BYTES_MAX, train_bytes());
	expect_arrival(100, 7, false);
	TEST_ASSERT_TRUE(send_train(SIM_TRAIN_BYTES_MAX, 9, 8));
	expect_arrival(SIM_TRAIN_BYTES_MAX, 9, true);
	TEST_ASSERT_EQUAL_UINT(8, b.train_packets);
	TEST_ASSERT_TRUE(send_train(512, 10, 2));
	expect_arrival(512, 10, true);
	TEST_ASSERT_EQUAL_UINT(2, b.train_packets);
	TEST_ASSERT_TRUE(send_by_lane(64, 11));
	expect_arrival(64, 11, true);
	TEST_ASSERT_EQUAL_UINT(0, b.train_packets);
}

/* A train ends before the ring does, and never comes over a frame that was not taken. */
void test_trains_all_over_the_ring(void)
{
	const struct outward *out;
	unsigned int shorter = 0;

	TEST_ASSERT_TRUE(send_by_lane(100, 7));
	expect_arrival(100, 7, false);
	out = &shared_of(a.wire)->out[segment_id_place(shared_process(b.wire))];
	for (uint32_t i = 0; i < 3 * out->ring.capacity / 20000; i++) {
		const uint32_t bytes = train_bytes();

		TEST_ASSERT_TRUE(bytes <= SIM_TRAIN_BYTES_MAX);
		shorter += bytes < SIM_TRAIN_BYTES_MAX;
		if (bytes < 512) {
			TEST_ASSERT_TRUE(send_by_lane(4096, (uint8_t)i));
			expect_arrival(4096, (uint8_t)i, true);
			continue;
		}
		TEST_ASSERT_TRUE(send_train(bytes, (uint8_t)i, 2));
		TEST_ASSERT_TRUE(out->ring.tail % out->ring.capacity >= bytes ||
				 out->ring.tail % out->ring.capacity == 0);
		expect_arrival(bytes, (uint8_t)i, true);
	}
	TEST_ASSERT_TRUE(shorter > 0);
}

void test_trains_that_fill_the_ring(void)
{
	unsigned int sent = 0;

	TEST_ASSERT_TRUE(send_by_lane(100, 7));
	expect_arrival(100, 7, false);
	for (unsigned int lap = 0; lap < 5; lap++) {
		const unsigned int before = b.arrived;
		const size_t before_bytes = b.all_bytes;
		size_t sent_bytes = 0;

		for (uint32_t bytes; (bytes = train_bytes()) >= 512; sent++) {
			TEST_ASSERT_TRUE(send_train(bytes, (uint8_t)sent, 2));
			sent_bytes += bytes;
		}
		TEST_ASSERT_TRUE(sent_bytes > 4 * SIM_TRAIN_BYTES_MAX || lap);
		flush(&a);
		while (receive(&b))
			;
		TEST_ASSERT_TRUE(b.arrived > before);
		TEST_ASSERT_EQUAL_size_t(sent_bytes, b.all_bytes - before_bytes);
		TEST_ASSERT_EQUAL_HEX8((uint8_t)(sent - 1), b.last[b.bytes - 1]);
		/* On to the next lap. */
		TEST_ASSERT_TRUE(send_by_lane(4096, 1));
		expect_arrival(4096, 1, true);
	}
}

static uint32_t told; /* the head, as the producer sees it while a train arrives */

static void look_at_head(struct end *end, const uint8_t *frame, size_t frame_bytes)
{
	const struct outward *out =
		&shared_of(a.wire)->out[segment_id_place(shared_process(b.wire))];

	(void)end;
	(void)frame;
	(void)frame_bytes;
	told = atomic_load(&out->ring.memory->head);
}

/* A train counts as the frames that it replaces: the consumer tells of its room, and looks at other rings, as often. */
void test_the_consumer_tells_of_each_train(void)
{
	unsigned int left = 31;

	TEST_ASSERT_TRUE(send_by_lane(100, 7));
	expect_arrival(100, 7, false);
	on_arrival = look_at_head;
	TEST_ASSERT_TRUE(send_by_lane(100, 8));
	for (unsigned int i = 1; i < left; i++)
		TEST_ASSERT_TRUE(send_train(SIM_TRAIN_BYTES_MAX, 9, 8));
	flush(&a);
	for (uint32_t last; left;) {
		const unsigned int before = b.arrived;
		unsigned int count;

		look_at_head(&b, NULL, 0);
		last = told;
		TEST_ASSERT_TRUE(receive(&b));
		count = b.arrived - before;
		TEST_ASSERT_TRUE(count <= 9);
		/* `told` does not know of the last train, and the first one may be the packet. */
		TEST_ASSERT_TRUE(count < 2 || told - last >= (count - 2) * SIM_TRAIN_BYTES_MAX);
		left -= count;
	}
}

/* Another connection's route takes the number: the receiver has to learn the lane's route again. */
void test_a_route_that_another_one_has_replaced_is_sent_again(void)
{
	const struct sim_route own = one_route;

	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	expect_arrival(100, 1, false);
	TEST_ASSERT_TRUE(send_by_lane(100, 2));
	expect_arrival(100, 2, true);
	one_route.hop_limit--;
	TEST_ASSERT_TRUE(train_bytes() > 0);
	TEST_ASSERT_TRUE(send_to(&a, b.qpn, 100, 3));
	expect_arrival(100, 3, false);
	one_route = own;
	TEST_ASSERT_EQUAL_UINT32(0, train_bytes());
	TEST_ASSERT_TRUE(send_by_lane(100, 4));
	expect_arrival(100, 4, false);
	TEST_ASSERT_TRUE(send_by_lane(100, 5));
	expect_arrival(100, 5, true);
}

/* Two connections whose routes have the same number take turns. */
void test_two_lanes_of_one_route_number(void)
{
	const struct sim_path first_path = path;
	const struct sim_lane first = lane;

	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	expect_arrival(100, 1, false);
	for (uint8_t i = 0; i < 4; i++) {
		static struct sim_lane second;

		second = first;
		path.route.hop_limit--;
		one_route = path.route;
		TEST_ASSERT_TRUE(second.ops->send(
			&second, &path,
			&(struct sim_packet){.opcode = 50 + i, .payload_bytes = 100}));
		expect_arrival(100, 50 + i, false);
		path = first_path;
		one_route = path.route;
		TEST_ASSERT_TRUE(send_by_lane(100, i));
		expect_arrival(100, i, false);
		TEST_ASSERT_TRUE(send_by_lane(100, i));
		expect_arrival(100, i, true);
	}
}

/* In another epoch the path may have another route. */
void test_the_route_of_another_epoch_is_sent_again(void)
{
	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	expect_arrival(100, 1, false);
	path.route.hop_limit--;
	one_route = path.route;
	lane.epoch++;
	TEST_ASSERT_EQUAL_UINT32(0, train_bytes());
	TEST_ASSERT_TRUE(send_by_lane(100, 2));
	expect_arrival(100, 2, false);
}

/* The packets of the train are sent one by one, so that only the one that cannot be read is lost. */
void test_a_train_that_cannot_be_read_is_not_sent(void)
{
	struct sim_counters before;

	TEST_ASSERT_TRUE(send_by_lane(100, 7));
	expect_arrival(100, 7, false);
	before = a.devices[0].counters;
	TEST_ASSERT_FALSE(send_train(0, 7, 2));
	TEST_ASSERT_EQUAL_MEMORY(&before, &a.devices[0].counters, sizeof(before));
	flush(&a);
	TEST_ASSERT_FALSE(receive(&b));
	TEST_ASSERT_TRUE(send_train(512, 7, 2));
	expect_arrival(512, 7, true);
}

/* The packet is counted as lost, and is not sent again by the network. */
void test_a_packet_that_cannot_be_read_is_lost(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		const uint64_t *lost = &a.devices[0].counters.lost_packets;
		const uint64_t before = *lost;

		TEST_ASSERT_TRUE(send_by_lane(0, 7));
		TEST_ASSERT_EQUAL_UINT64(before + 1, *lost);
		TEST_ASSERT_FALSE(receive(&b));
		TEST_ASSERT_TRUE(send_by_lane(100, 7));
		expect_arrival(100, 7, i);
	}
}

void test_a_lane_leads_to_other_processes_only(void)
{
	TEST_ASSERT_FALSE(find_lane(a.qpn));
	TEST_ASSERT_FALSE(find_lane(b.qpn + 64 * SIM_BLOCK_PLACES));
}

void test_a_full_ring_is_left_to_the_network(void)
{
	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	while (room_to(&a, b.qpn))
		TEST_ASSERT_TRUE(send_by_lane(4096, 1));
	TEST_ASSERT_EQUAL_UINT(0, room());
	TEST_ASSERT_TRUE(train_bytes() < 2 * SIM_FRAME_BYTES_MAX);
	flush(&a);
	while (receive(&b))
		;
	TEST_ASSERT_TRUE(room() > 0);
}

static void expect_ended(void)
{
	TEST_ASSERT_FALSE(send_by_lane(100, 1));
	TEST_ASSERT_FALSE(send_by_lane(4096, 1));
	TEST_ASSERT_FALSE(send_train(8192, 1, 2));
}

void test_a_lane_ends_with_the_process_of_the_qpn(void)
{
	const uint32_t qpn = b.qpn;

	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	close_end(&b);
	expect_ended();
	/* The next process at the place has other numbers. */
	open_end(&b);
	expect_ended();
	TEST_ASSERT_FALSE(find_lane(qpn));
	TEST_ASSERT_FALSE(receive(&b));
	TEST_ASSERT_TRUE(find_lane(b.qpn));
	TEST_ASSERT_TRUE(send_by_lane(100, 2));
	expect_arrival(100, 2, false);
}

static _Atomic uint64_t *entry_of(const struct segment *segment, uint32_t qpn)
{
	return &segment_row_at(segment, 0)->qp[(qpn & 0x3ffff) / SIM_BLOCK_PLACES];
}

/* The process that buries another one frees its blocks first, and may be killed before it frees the place. */
void test_a_lane_ends_with_the_block_of_the_qpn(void)
{
	struct segment probe;

	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	expect_arrival(100, 1, false);
	attach(&probe);
	blocks_free(&probe, shared_process(b.wire));
	expect_ended();
	TEST_ASSERT_FALSE(send_to(&a, b.qpn, 100, 1));
	places_leave(&probe);
	TEST_ASSERT_FALSE(receive(&b));
}

/* Another process writes over the table: the block of a process that has left seems to be its own again. */
void test_a_lane_ends_with_the_process_whatever_the_table_says(void)
{
	const uint32_t place = segment_id_place(shared_process(b.wire)), qpn = b.qpn;
	struct segment probe;
	uint64_t value;

	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	expect_arrival(100, 1, false);
	attach(&probe);
	value = atomic_load(entry_of(&probe, qpn));
	close_end(&b);
	atomic_store(entry_of(&probe, qpn), value);
	expect_ended();
	TEST_ASSERT_FALSE(send_to(&a, qpn, 100, 1));
	open_end(&b);
	TEST_ASSERT_EQUAL_UINT32(place, segment_id_place(shared_process(b.wire)));
	expect_ended();
	TEST_ASSERT_FALSE(send_to(&a, qpn, 100, 1));
	places_leave(&probe);
	TEST_ASSERT_FALSE(receive(&b));
}

static bool has_lane(void)
{
	return room() || send_by_lane(100, 1) || send_by_lane(4096, 1) || train_bytes() ||
	       send_train(8192, 1, 2);
}

/* The child of a fork maps the file elsewhere, or not at all. Its ring to the same process is no ring of the lanes that
 * it has inherited. */
static int use_lane(void)
{
	a.wire->forked(a.wire);
	b.wire->forked(b.wire);
	occupy_mappings();
	if (has_lane() || a.wire->resume(a.wire) || has_lane())
		return 1;
	if (!send_to(&a, b.qpn, 100, 3) || has_lane())
		return 1;
	if (!find_lane(b.qpn) || !send_by_lane(100, 4))
		return 1;
	flush(&a);
	return 0;
}

void test_a_lane_ends_with_a_fork(void)
{
	pid_t child;

	TEST_ASSERT_TRUE(send_by_lane(100, 1));
	expect_arrival(100, 1, false);
	child = child_begin(use_lane);
	expect_arrival(100, 3, false);
	expect_arrival(100, 4, true);
	TEST_ASSERT_FALSE(receive(&b));
	TEST_ASSERT_TRUE(send_by_lane(100, 2));
	expect_arrival(100, 2, true);
	child_kill(child);
	TEST_ASSERT_EQUAL_INT(SIM_PRESENCE_OTHER, find_from(&a, b.qpn));
}
