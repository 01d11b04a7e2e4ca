/* SPDX-License-Identifier: MIT */
/*
 * usage: gloo RANK RANKS FOLDER GID_INDEX
 * Allreduces, a broadcast and barriers of libgloo over its transport ibverbs. The ranks meet by files in the folder.
 * Each checks every value. Prints a line and exits with 0 if all is right.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

static const size_t counts[] = {1, 1000, 262144};
static constexpr int rounds = 3;
static constexpr int barriers = 50;

using Group = std::shared_ptr<gloo::rendezvous::Context>;

/* libgloo aborts if an algorithm ends before the completions of its last sends have been polled: all of them live on. */
template <class A, class... Arguments> static A &make(Arguments &&...arguments)
{
	return *new A(std::forward<Arguments>(arguments)...);
}

static void check(const char *what, float got, float wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "%s: %g instead of %g\n", what, got, wanted);
	exit(1);
}

static float value(size_t at, int round)
{
	return (float)((at * 7 + round) % 1000);
}

template <class A> static void allreduce(const char *name, const Group &group, size_t count)
{
	auto &values = make<std::vector<float>>(count);
	auto &algorithm = make<A>(group, std::vector<float *>{values.data()}, (int)count);
	const float sum = (float)group->size * (group->size + 1) / 2;

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < count; i++)
			values[i] = value(i, round) * (group->rank + 1);
		algorithm.run();
		for (size_t i = 0; i < count; i++)
			check(name, values[i], value(i, round) * sum);
	}
}

static void broadcast(const Group &group, int root)
{
	const size_t count = 5000;
	auto &values = make<std::vector<float>>(count);

	for (size_t i = 0; i < count; i++)
		values[i] = value(i, group->rank);
	make<gloo::BroadcastOneToAll<float>>(group, std::vector<float *>{values.data()}, (int)count,
					     root)
		.run();
	for (size_t i = 0; i < count; i++)
		check("broadcast", values[i], value(i, root));
}

template <class B> static void wait_often(const Group &group)
{
	auto &barrier = make<B>(group);

	for (int i = 0; i < barriers; i++)
		barrier.run();
}

/* Returns when all ranks are here: until then a rank acknowledges the others' packets. */
static void wait_for_end(gloo::rendezvous::FileStore &store, int rank, int ranks)
{
	std::vector<std::string> ends;

	for (int i = 0; i < ranks; i++)
		ends.push_back("end" + std::to_string(i));
	store.set(ends[rank], {1});
	store.wait(ends, std::chrono::seconds(60));
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
	gloo::rendezvous::FileStore store(argv[3]);
	auto device = gloo::transport::ibverbs::CreateDevice({"sim0", 1, atoi(argv[4])});
	auto group = std::make_shared<gloo::rendezvous::Context>(rank, ranks);

	group->connectFullMesh(store, device);
	for (size_t count : counts) {
		allreduce<gloo::AllreduceRing<float>>("ring", group, count);
		allreduce<gloo::AllreduceRingChunked<float>>("chunked ring", group, count);
		allreduce<gloo::AllreduceHalvingDoubling<float>>("halving and doubling", group,
								 count);
	}
	for (int root = 0; root < ranks; root++)
		broadcast(group, root);
	wait_often<gloo::BarrierAllToAll>(group);
	wait_often<gloo::BarrierAllToOne>(group);
	wait_for_end(store, rank, ranks);
	puts("allreduces, broadcasts and barriers");
	fflush(stdout);
	_exit(0); /* exit(3) would end the algorithms */
}
