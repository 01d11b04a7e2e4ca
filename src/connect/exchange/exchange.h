/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_EXCHANGE_H
#define SRC_CONNECT_EXCHANGE_H

#include <verbena/rdma.h>

/* Makes a listener of vb_rdma_exchange_tcp() from a listening socket, which the listener closes; the
 * socket is also closed if the call fails. Returns 0 or errno; for fd -1 the present errno. */
int tcp_listener_of(int fd, void **listener);

/* A number that changes whenever something in the hall moves: a listener, a line or its bytes. */
uint64_t hall_state(struct vb_rdma_hall *hall);

/* Waits until the hall's state is another than seen, or until deadline_ns of CLOCK_MONOTONIC. */
void hall_wait(struct vb_rdma_hall *hall, uint64_t seen, uint64_t deadline_ns);

/* Sends or receives the bytes that are left of length_bytes, and adds to *done. Returns 0 when all are
 * done, EAGAIN, or the errno of the line. */
static inline int line_move(const struct vb_rdma_exchange *exchange, void *line, void *bytes,
			    size_t length_bytes, bool sends, size_t *done)
{
	size_t moved = 0;
	int err = 0;

	while (!err && *done < length_bytes) {
		uint8_t *at = (uint8_t *)bytes + *done;

		if (sends)
			err = exchange->send(line, at, length_bytes - *done, &moved);
		else
			err = exchange->receive(line, at, length_bytes - *done, &moved);
		if (!err)
			*done += moved;
	}
	return err;
}

#endif /* SRC_CONNECT_EXCHANGE_H */
