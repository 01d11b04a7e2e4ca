/* SPDX-License-Identifier: MIT */
/*
 * A ring, an allreduce and an alltoall of MPI, with messages from 0 bytes to 1 MiB. Each rank checks
 * each byte that it gets. Prints a line and exits with 0 if all is right.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 6, ROUNDS = 3 };

static const int sizes[SIZES] = {0, 1, 64, 4096, 65536, 1 << 20};
static int rank, ranks;

static void fail(const char *what, int size)
{
	fprintf(stderr, "rank %d: %s of %d bytes: wrong\n", rank, what, size);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The byte at a place of a message; each message has other bytes. */
static uint8_t byte_of(int from, int to, int round, int at)
{
	uint32_t x = (uint32_t)(from * 131 + to * 31 + round * 7 + 1) * 2654435761u;

	x ^= (uint32_t)at * 2246822519u;
	return (uint8_t)(x >> 13 ^ x >> 24);
}

static void fill(uint8_t *bytes, int size, int from, int to, int round)
{
	for (int i = 0; i < size; i++)
		bytes[i] = byte_of(from, to, round, i);
}

static void check(const char *what, const uint8_t *bytes, int size, int from, int to, int round)
{
	for (int i = 0; i < size; i++)
		if (bytes[i] != byte_of(from, to, round, i))
			fail(what, size);
}

/* A message goes once around; each rank sees it. */
static void ring(uint8_t *bytes, int size, int round)
{
	const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	MPI_Status status;
	int length = -1;

	memset(bytes, 0, (size_t)size);
	if (rank == 0) {
		fill(bytes, size, 0, 0, round);
		MPI_Send(bytes, size, MPI_BYTE, next, round, MPI_COMM_WORLD);
		memset(bytes, 0, (size_t)size);
	}
	MPI_Recv(bytes, size, MPI_BYTE, before, round, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &length);
	if (length != size)
		fail("ring", size);
	check("ring", bytes, size, 0, 0, round);
	if (rank != 0)
		MPI_Send(bytes, size, MPI_BYTE, next, round, MPI_COMM_WORLD);
}

static void sum(int size, int round)
{
	const int count = size / (int)sizeof(int64_t);
	int64_t *ours = calloc((size_t)count + 1, sizeof(*ours));
	int64_t *sums = calloc((size_t)count + 1, sizeof(*sums));

	for (int i = 0; i < count; i++)
		ours[i] = (int64_t)(rank + 1) * (i + round);
	MPI_Allreduce(ours, sums, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		if (sums[i] != (int64_t)ranks * (ranks + 1) / 2 * (i + round))
			fail("allreduce", size);
	free(ours);
	free(sums);
}

static void exchange(uint8_t *out, uint8_t *in, int size, int round)
{
	for (int to = 0; to < ranks; to++)
		fill(out + (size_t)to * size, size, rank, to, round);
	memset(in, 0, (size_t)size * ranks);
	MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		check("alltoall", in + (size_t)from * size, size, from, rank, round);
}

int main(int argc, char **argv)
{
	uint8_t *out, *in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	out = malloc((size_t)ranks << 20);
	in = malloc((size_t)ranks << 20);
	if (!out || !in)
		fail("memory", 0);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < SIZES; i++) {
			ring(in, sizes[i], round);
			sum(sizes[i], round);
			exchange(out, in, sizes[i], round);
		}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("ring, allreduce and alltoall of %d ranks\n", ranks);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
