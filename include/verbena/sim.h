/* SPDX-License-Identifier: MIT */
/*
 * The simulated world: its devices and links, its clock, its trace.
 *
 * A process has one default world. The backend `sim` makes it when it is first used, and
 * ibv_get_device_list() lists its devices. A program may open more worlds with vb_sim_open().
 *
 * Conventions of all functions here:
 * - A parameter `sim` that is NULL stands for the default world, which is made if need be. If it
 *   cannot be made, a function that returns int returns the error, and another function returns
 *   NULL, 0 or VB_SIM_NEVER.
 * - A function that returns int returns 0 or an errno value, unless its comment says otherwise.
 *   vb_last_error() explains the error in a sentence.
 * - Any thread may call any function at any time, unless its comment says otherwise.
 * - Times are in nanoseconds of the world's clock, which starts at 0 when the world is made; with
 *   VB_SIM_WIRE_SHARED, when its first process makes it.
 */
#ifndef VERBENA_SIM_H
#define VERBENA_SIM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VB_SIM_NAME_MAX	   32
#define VB_SIM_QUIRKS_TEXT 256
#define VB_SIM_DEVICES_MAX 64
#define VB_SIM_LINKS_MAX   256
#define VB_SIM_PORTS_MAX   4
#define VB_SIM_GIDS_MAX	   16
#define VB_SIM_PKEYS_MAX   16
#define VB_SIM_FAULTS_MAX  64
#define VB_SIM_EVENTS_MAX  64

/* As a time: no event is due. As a duration: no limit. */
#define VB_SIM_NEVER UINT64_MAX

struct vb_sim;
struct vb_fault_rule; /* <verbena/fault.h> */

enum vb_sim_clock {
	/*
	 * Time moves only when the program waits for something; nothing sleeps. Posting queues
	 * work, and a wait runs it. These calls wait: a blocking ibv_get_cq_event() or
	 * ibv_get_async_event(), a poll of an empty CQ, a query that would give the same answer as
	 * the last one (a query of a port: only if the context made no object since then),
	 * vb_sim_run() and vb_sim_wait_cq(); poll(2), select(2) and epoll_wait(2) on a descriptor of
	 * Verbena, as vb_sim_wait_fd() says. Sleeping moves no time.
	 */
	VB_SIM_CLOCK_VIRTUAL,
	/*
	 * Time is CLOCK_MONOTONIC. Timers are late if the machine cannot keep up with the simulated
	 * events.
	 */
	VB_SIM_CLOCK_REAL,
};

/* How the packets of a device reach devices of other processes. */
enum vb_sim_wire {
	/* Not at all: the device is this process's own. */
	VB_SIM_WIRE_MEMORY,
	/*
	 * The device is the machine's: each process of one user that names the same world (struct
	 * vb_sim_config) has it, with the same GUIDs, GIDs and LIDs. Needs the real clock.
	 */
	VB_SIM_WIRE_SHARED,
	/*
	 * RoCE v2 over UDP port 4791, to other machines, network namespaces and the kernel's SoftRoCE.
	 * The device has one GID beside its link-local one: the address that it claims. Ethernet only.
	 * Needs the real clock.
	 */
	VB_SIM_WIRE_UDP,
};

#define VB_SIM_ADDRESS_MAX 64

/* A simulated device. The name is required; other fields that are zero take the defaults in []. */
struct vb_sim_device_config {
	char name[VB_SIM_NAME_MAX];	 /* such as "sim0" */
	char profile[VB_SIM_NAME_MAX];	 /* selects limits, capabilities and quirks ["spec"] */
	char quirks[VB_SIM_QUIRKS_TEXT]; /* more quirks, by vb_sim_quirk_name(): "a,b" [""] */
	unsigned int ports;		 /* [1] */
	int link_layer;	  /* IBV_LINK_LAYER_ETHERNET or IBV_LINK_LAYER_INFINIBAND [Ethernet] */
	enum ibv_mtu mtu; /* the largest and the active MTU of the ports [IBV_MTU_4096] */

	/*
	 * GIDs of port 1. On Ethernet, each is a GID of type RoCE v2, and an IPv4 address is
	 * written ::ffff:a.b.c.d [::ffff:10.0.0.N and fd00::N for the Nth device, as
	 * vb_sim_default_gids() says; in a world without a seed on the real clock, other
	 * addresses in each process]. On InfiniBand, they follow the port's own GID [none].
	 *
	 * The GID table has at index 0 a link-local GID, made from the MAC address or the port
	 * GUID. These GIDs follow. On Ethernet, with the profiles "spec" and "mlx5", all of them
	 * follow a second time as GIDs of type RoCE v1.
	 *
	 * On InfiniBand the ports have the LIDs 1, 2, 3, ..., in the order of the devices, and
	 * LMC 0.
	 */
	unsigned int gid_count;
	union ibv_gid gids[VB_SIM_GIDS_MAX];

	unsigned int pkey_count;	  /* [1] */
	uint16_t pkeys[VB_SIM_PKEYS_MAX]; /* in host order [0xffff] */

	enum vb_sim_wire wire; /* [VB_SIM_WIRE_MEMORY] */
	/* VB_SIM_WIRE_UDP: an address of this machine, or the name of an interface [a free address of
	 * the loopback network] */
	char address[VB_SIM_ADDRESS_MAX];
};

/* Fills gids with the two default GIDs of a world's device, by its number from 1, on Ethernet. */
void vb_sim_default_gids(unsigned int number, union ibv_gid gids[2]);

/* A cable between port 1 of two devices. */
struct vb_sim_link_config {
	char a[VB_SIM_NAME_MAX]; /* the devices' names */
	char b[VB_SIM_NAME_MAX];
	uint64_t delay_ns;	  /* from one end to the other [0] */
	uint64_t bits_per_second; /* how fast packets are serialised; 0 is unlimited [0] */
};

enum vb_sim_event_kind {
	VB_SIM_AT_PORT_STATE,  /* `up`: as vb_sim_port_state() */
	VB_SIM_AT_LID,	       /* `lid`: as vb_sim_set_lid() */
	VB_SIM_AT_GID,	       /* `index`, `gid`: as vb_sim_set_gid() */
	VB_SIM_AT_PKEY,	       /* `index`, `pkey`: as vb_sim_set_pkey() */
	VB_SIM_AT_PORT_EVENT,  /* `type`: as vb_sim_port_event() */
	VB_SIM_AT_KILL_DEVICE, /* as vb_sim_kill_device(); port_num has no meaning */
};

/*
 * Something that happens to a device so long after the process has made or joined the world, whether
 * the program is in a verb then or not. On the real clock, it happens while a device of the world is open, or as soon as
 * one is opened. On the virtual clock, time moves to it as to the end of a timer.
 */
struct vb_sim_event {
	uint64_t at_ns;
	enum vb_sim_event_kind kind;
	const char *device;    /* the name */
	unsigned int port_num; /* from 1 */
	/* The fields that the kind does not name have no meaning. */
	bool up;
	uint16_t lid;
	unsigned int index;
	union ibv_gid gid;
	uint16_t pkey; /* in host order */
	enum ibv_event_type type;
};

/* The name of a world that no other process has: see vb_sim_config.world. */
#define VB_SIM_WORLD_NEW "new"

/*
 * A world. Without devices (device_count 0), it gets two, sim0 and sim1. Without links (link_count
 * 0), every port reaches every other port of its link layer without delay; with links, a port
 * reaches only the ports that links join it to. A device always reaches itself. An Ethernet port
 * never reaches an InfiniBand port.
 */
struct vb_sim_config {
	enum vb_sim_clock clock;
	bool seed_given; /* not set: seed 1 on the virtual clock, a random one on the real clock */
	/*
	 * Decides all random numbers of the world. Without a seed on the real clock, QPNs, memory
	 * keys, MACs and default GIDs begin elsewhere in each process, so that a program does not
	 * take the devices of another process for its own. With VB_SIM_WIRE_SHARED the world decides
	 * them, with and without a seed.
	 */
	uint64_t seed;
	const char *trace; /* the pcap file of vb_sim_trace_open(); NULL for none */
	uint64_t trace_bytes_max, trace_packets_max; /* as vb_sim_trace_limit() */
	unsigned int device_count;
	struct vb_sim_device_config devices[VB_SIM_DEVICES_MAX];
	unsigned int link_count;
	struct vb_sim_link_config links[VB_SIM_LINKS_MAX];
	/* The rules that the world begins with, as after vb_fault_add() in this order. */
	unsigned int fault_count;
	const struct vb_fault_rule *faults;
	/*
	 * Names the world of devices whose wire is VB_SIM_WIRE_SHARED: letters, digits, '_', '-' and '.'.
	 * All processes that name a world must have the same devices. "" is the default world, of which
	 * there is one for each user, network namespace and configuration of these devices. VB_SIM_WORLD_NEW
	 * makes a world that only this process, and what it forks, is in.
	 */
	char world[VB_SIM_NAME_MAX];
	/* In any order; events of one time happen in the order in which they stand. */
	unsigned int event_count;
	const struct vb_sim_event *events;
	/*
	 * Set: the process only reads attributes. A device with VB_SIM_WIRE_UDP has the GID and the MTU of its
	 * address without claiming the address, which another process may have, and reaches no other process.
	 */
	bool attributes_only;
};

/*
 * Replaces the default world by a new one. config is copied, with what it points to; NULL is a configuration of zeros.
 * After an error the default world stays. A default world whose devices have the wire shared or udp leaves
 * its addresses and its shared world before the new one opens, which may name the same: after an error
 * there is no default world, and the next use makes one (vb_sim_set_default()).
 *
 * EBUSY: a device of the default world is open; the sentence of vb_last_error() names what is open.
 *	See vb_sim_reset().
 * EINVAL: a name is empty, too long or given twice; a link names no device, or joins two link
 *	layers; a profile, quirk, MTU, link layer or clock does not exist; an event names no device or
 *	port of the world, or has a value that its function refuses; there are too many of something.
 * The errors of vb_fault_add().
 * ENOMEM, or the errors of vb_sim_trace_open().
 */
int vb_sim_configure(const struct vb_sim_config *config);

/*
 * Sets the function that gives the default world's configuration when the world is first used and
 * vb_sim_configure() has not made it. Without such a function (NULL), that is a configuration of
 * zeros.
 *
 * fn returns a configuration, which must stay valid until the next call of fn; or NULL with errno,
 * which becomes the error of the verb that needs the world. fn runs under a lock: it must not call
 * a function that uses the default world. A default world that exists stays unchanged.
 */
typedef const struct vb_sim_config *vb_sim_default_fn(void);
void vb_sim_set_default(vb_sim_default_fn *fn);

/*
 * Makes a world beside the default one; the caller ends it with vb_sim_close(). config is copied.
 * Returns NULL with the errno of vb_sim_configure().
 */
struct vb_sim *vb_sim_open(const struct vb_sim_config *config);

/*
 * Ends a world of vb_sim_open(). Device lists of it stay valid until they are freed.
 *
 * EBUSY: a device of the world is open; the sentence names what is open.
 * EINVAL: sim is NULL or the default world.
 */
int vb_sim_close(struct vb_sim *sim);

/*
 * Ends the default world, whatever is open in it, and leaves no default world: the next use makes
 * one, as in a fresh process. For the end of a test, whose failure may have left objects behind:
 *
 *	void tearDown(void)
 *	{
 *		vb_sim_reset();
 *	}
 *
 * The world's devices are closed with all their objects, its trace is closed, and fault rules and
 * watchers are gone. A thread that waits in the world (for an event, an acknowledgement, a
 * completion, for time to pass) fails with ENODEV, and vb_sim_reset() returns after all of these
 * threads have left their waits. Registrations of threads are gone, too. Other threads must not be
 * inside a verb of the world. Afterwards, a verb on an object of the world fails as on one that was
 * destroyed. Device lists of the world stay valid until they are freed. The function of
 * vb_sim_set_default() stays. Worlds of vb_sim_open() stay as they are.
 *
 * The memory of a world that was in use stays allocated, so that stale pointers are recognised.
 * After fork(), the child may call it, too.
 */
void vb_sim_reset(void);

/* Returns the world that an open device belongs to; NULL if the context is not a simulated one. */
struct vb_sim *vb_sim_of(struct ibv_context *context);

/*
 * Lists the devices of a world, as ibv_get_device_list() does: the caller frees the list with
 * vb_free_device_list(). Returns NULL with errno ENOMEM.
 */
struct ibv_device **vb_sim_device_list(struct vb_sim *sim, int *num_devices);

/* Returns the world's time. On the real clock, the world is brought up to now first. */
uint64_t vb_sim_now_ns(struct vb_sim *sim);

/* Returns which clock the world has. */
enum vb_sim_clock vb_sim_clock_of(struct vb_sim *sim);

/*
 * Waits on the virtual clock until cq has a completion, but for timeout_ns at most (VB_SIM_NEVER:
 * no limit), and takes up to num_entries completions into wc. Time never passes the end of the
 * timeout, while a poll of an empty CQ moves time to the next event, however far it is.
 *
 * Returns how many completions were taken; 0 if the timeout has passed; -1 with errno:
 * EDEADLK: no timer or packet is due, so that no completion can come.
 * EIO: the CQ has overrun, or another thread has destroyed it.
 * EINVAL: cq is not a live simulated CQ, num_entries is less than 1, or the world has the real
 *	clock.
 */
int vb_sim_wait_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns);

/*
 * For threads that share something beside the world, such as a queue in memory. On the virtual
 * clock, a thread that changes the queue calls vb_sim_tell() afterwards; vb_sim_told() counts these
 * calls. A thread that waits for the queue calls vb_sim_wait_cq_told(), which waits as
 * vb_sim_wait_cq() does, but returns 0 as soon as vb_sim_told() differs from `told`. Read `told`
 * before you look at the queue:
 *
 *	told = vb_sim_told(sim);
 *	while (queue_is_empty() && !vb_sim_wait_cq_told(cq, 1, &wc, VB_SIM_NEVER, told))
 *		told = vb_sim_told(sim);
 *
 * vb_sim_wait_cq_told() fails as vb_sim_wait_cq(); EDEADLK also means that no other registered
 * thread is left that could call vb_sim_tell().
 */
void vb_sim_tell(struct vb_sim *sim);
uint64_t vb_sim_told(struct vb_sim *sim);
int vb_sim_wait_cq_told(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns,
			uint64_t told);

/*
 * Waiting for descriptors on the virtual clock. The descriptors of completion channels, of asynchronous
 * events and of event channels of librdmacm can be waited for with poll(2), select(2) and epoll_wait(2) and
 * their relatives: libverbena.so, and `verbena run` for unmodified programs, replace these functions. Such a
 * wait moves virtual time, as a wait in a verb does:
 *
 * - A wait runs the present instant, and then moves time from event to event until a descriptor of the set is
 *   ready. The end of the timeout is a time of the virtual clock: the wait returns 0 when the clock has
 *   reached it, and takes no real time. A wait with a timeout of 0 runs the present instant only; but 16 of
 *   them in a row, at the same time, move time to the next event.
 * - If the set also has descriptors that are not Verbena's, such as a socket, the wait moves time through the
 *   events that are due before the end of the timeout, and then sleeps really, for the timeout.
 * - If no event is due and there is no timeout, the wait sleeps, as on a real machine.
 * - A set with descriptors of several worlds moves the time of one of them.
 *
 * vb_sim_wait_fd() is for a program that waits otherwise (by io_uring(7), syscall(2), or from a library that is
 * linked before libverbena.so). fd is one of the descriptors. look(arg) looks without waiting,
 * such as poll(2) with a timeout of 0, and returns true if the wait is over; it must not call Verbena. Waits for
 * timeout_ns at most (VB_SIM_NEVER: no limit). Returns 0 if look() has
 * returned true, or
 * ETIMEDOUT: the timeout has passed.
 * EDEADLK: no timer or packet is due, and there is no limit.
 * EINVAL: fd is not a descriptor of a world on the virtual clock.
 * ENODEV: the world has ended.
 */
typedef bool vb_sim_look_fn(void *arg);
int vb_sim_wait_fd(int fd, vb_sim_look_fn *look, void *arg, uint64_t timeout_ns);

/* As vb_sim_wait_fd(), but time passes through events only: EAGAIN without a sentence if none is due before the
 * end of the timeout, and *left_ns is what is left of the timeout. Meanwhile the caller may wait for something
 * else. */
int vb_sim_wait_fd_events(int fd, vb_sim_look_fn *look, void *arg, uint64_t timeout_ns,
			  uint64_t *left_ns);

/* Returns true if a wait for the descriptor moves a virtual clock; with -1, if there is such a descriptor. */
bool vb_sim_has_fd(int fd);

/* Returns the time of the next timer or packet; VB_SIM_NEVER if there is none. */
uint64_t vb_sim_next_ns(struct vb_sim *sim);

/*
 * Moves the virtual clock by duration_ns: runs the present instant to its end, then every event
 * that is due within the duration. With duration_ns 0, only the present instant runs.
 *
 * EINVAL: the world has the real clock.
 */
int vb_sim_run(struct vb_sim *sim, uint64_t duration_ns);

/*
 * Registers the calling thread with a world, or ends its registration. If several threads use a
 * world with the virtual clock, each of them registers: time then moves only while all registered
 * threads wait. If no thread is registered, the world assumes that one thread uses it.
 *
 * pthread_cancel(3) ends a thread only while a verb waits, on either clock. A registered thread that
 * may be cancelled ends its registration in a cleanup handler.
 */
void vb_sim_thread_enter(struct vb_sim *sim);
void vb_sim_thread_leave(struct vb_sim *sim);

/*
 * Writes every packet from now on to a pcap file at path, which is created or emptied. Times are
 * those of the world's clock, in nanoseconds. The file holds Ethernet frames, or, in a world of
 * InfiniBand, ERF records (link type 197, ERF type 21), each frame from its LRH to its VCRC. A
 * packet that is lost on the way has the destination MAC address 02:00:00:00:de:ad, or in ERF the
 * flag "receive error".
 *
 * A packet is in the file when the verb that sent it has returned: the file is whole after exit(),
 * _exit(), abort() and signals. A process that is killed inside a verb may leave a last record that
 * is cut short. A child of fork() writes nothing into its parent's trace. If the file cannot be
 * written any more, one line on stderr says so, and the program continues. In a world that processes share, a
 * child that opens a device of its own writes a part of the trace, as other processes do.
 *
 * Several processes, and several worlds, may name the same file at the same time. The first one writes the
 * file; each other writes a part, PATH.PID.part. The last one that ends its trace, or exits, joins the parts
 * into the file, in the order of their times: processes that share a world share its clock. What processes
 * left that were killed is joined by the next one that ends, or by `verbena trace merge PATH`. A trace that
 * begins while nobody writes the file or a part empties the file and removes the parts.
 *
 * With the same seed, a program writes the same bytes on each run, if its own actions are the same.
 * RDMA requests carry virtual addresses: device memory is addressed from 0, and the regions of
 * <verbena/connect.h> have the same places in each process (not under AddressSanitizer or
 * ThreadSanitizer), but other memory is where the program, or malloc(3), puts it. Such a program
 * repeats its bytes without address randomisation, as under `setarch -R`.
 *
 * The world's earlier trace, if there is one, ends here; if this call fails, it continues.
 *
 * ENOTSUP: the world has devices of both link layers, and a file takes only one.
 * ESPIPE: path is a pipe or a socket.
 * ENOMEM, or an error of open(2) or write(2).
 */
int vb_sim_trace_open(struct vb_sim *sim, const char *path);

/*
 * Limits the traces that the world opens from now on: a trace keeps its last packets, of at most bytes_max bytes and at
 * least half as many, or packets_max of them. 0: no limit. The end of the trace prints a line on stderr if packets
 * were left out.
 *
 * While a trace is written, the file and its parts have up to twice packets_max. A process that is killed, and one that
 * ends by _exit() or abort(), leaves its last packets in parts: `verbena trace merge PATH` joins them. Each process
 * that writes a trace has the limit for itself.
 *
 * Returns 0, or an errno value if there is no world.
 */
int vb_sim_trace_limit(struct vb_sim *sim, uint64_t bytes_max, uint64_t packets_max);

/* Ends the trace. Returns 0 if there is none. EIO: some packets are not in the file, or the parts of other
 * processes cannot be joined. */
int vb_sim_trace_close(struct vb_sim *sim);

/*
 * Gets a frame: from the Ethernet header or the LRH on, without an ERF header. frame is valid
 * during the call. lost is set if the frame is lost on the way.
 */
typedef void vb_sim_frame_fn(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
			     bool lost);

/*
 * Calls fn for every frame that a port sends, beside the trace file; fn NULL ends this. The world's
 * lock is held during fn, which must not call any function of Verbena.
 */
void vb_sim_watch(struct vb_sim *sim, vb_sim_frame_fn *fn, void *arg);

/* Counters of a device since it was made, over all its ports. */
struct vb_sim_counters {
	uint64_t sent_packets;
	uint64_t received_packets;
	uint64_t lost_packets;	  /* sent here, lost on the way: a fault, an address of nobody */
	uint64_t dropped_packets; /* received here, dropped: vb_sim_drops() says why */
	uint64_t duplicate_requests;
	uint64_t out_of_sequence_requests;
	uint64_t rnr_naks_sent;
	uint64_t rnr_naks_received;
	uint64_t sequence_naks_sent;
	uint64_t sequence_naks_received;
	uint64_t ack_timeouts;
	uint64_t retransmitted_packets;
	uint64_t guarded_faults; /* accesses to application memory that is not mapped */
};

/* Fills *counters. EINVAL: the context is closed, or not a simulated one. */
int vb_sim_counters(struct ibv_context *context, struct vb_sim_counters *counters);

/*
 * Reads one counter by the name, and with the meaning, that it has in SoftRoCE (Linux
 * drivers/infiniband/sw/rxe/rxe_hw_counters.c; the kernel shows it as a file in
 * /sys/class/infiniband/DEVICE/ports/1/hw_counters). The counter covers all ports of the device.
 * Some differ from struct vb_sim_counters: sent_pkts leaves out packets that could not leave their
 * port, rcvd_pkts leaves out packets that no QP takes.
 *
 * EINVAL: no counter has this name, or the context is closed or not a simulated one.
 */
int vb_sim_counter(struct ibv_context *context, const char *name, uint64_t *value);

/*
 * Returns the name of the counter at index, in the kernel's order from 0, and sets *about to what
 * it counts; about may be NULL. Returns NULL behind the last counter. The strings are constant.
 */
const char *vb_sim_counter_name(unsigned int index, const char **about);

/*
 * Counts the received packets that a device has dropped for one cause, such as "icrc" or "pkey":
 * vb_sim_drop_cause() lists the causes. The sum of all causes is dropped_packets of
 * vb_sim_counters(). Requests of RC and XRC that are refused by a NAK, repeated requests, and
 * answers that answer nothing are not dropped in this sense.
 *
 * EINVAL: there is no such cause, or the context is closed or not a simulated one.
 */
int vb_sim_drops(struct ibv_context *context, const char *cause, uint64_t *packets);

/*
 * Returns the name of the cause at index, from 0, and sets *about to what it means; about may be
 * NULL. Returns NULL behind the last cause. The strings are constant.
 */
const char *vb_sim_drop_cause(unsigned int index, const char **about);

/*
 * Gives a port a frame, as if the frame came over the port's wire now. frame begins with the
 * Ethernet header or the LRH, and ends with the ICRC or the VCRC; it is copied. The port decodes and
 * checks the frame as any other: a frame that is wrong is dropped and counted (vb_sim_drops()), and a
 * packet that a QP takes does what the packet says. Fault rules do not see the frame; the trace and
 * the watcher do, although no QP has sent it. Its consequences, such as an ACK, follow in the same
 * instant: on the virtual clock, when the program waits next.
 *
 * EINVAL: the context is closed or not a simulated one, the port does not exist, or the frame is
 *	longer than 4234 bytes.
 * EFAULT: the frame cannot be read.
 * ENETDOWN: the port is down, or the device is dead.
 */
int vb_sim_inject(struct ibv_context *context, unsigned int port_num, const void *frame,
		  size_t frame_bytes);

/*
 * The functions below do to a device what a person at the rack, or the subnet manager, could do.
 * Each takes an open context of the device; ports count from 1. Each raises the asynchronous event
 * that it names (ibv_get_async_event(3)) in every open context of the device. Each returns EINVAL
 * if the context is closed or not a simulated one, or if the port does not exist.
 */

/*
 * Plugs in the cable of a port (IBV_EVENT_PORT_ACTIVE) or pulls it out (IBV_EVENT_PORT_ERR). A port
 * that is down loses what is sent through it. Nothing happens if the port has that state already.
 */
int vb_sim_port_state(struct ibv_context *context, unsigned int port_num, bool up);

/* Changes the port's LID: IBV_EVENT_LID_CHANGE. */
int vb_sim_set_lid(struct ibv_context *context, unsigned int port_num, uint16_t lid);

/*
 * Changes an entry of the GID table, or adds one behind its end: IBV_EVENT_GID_CHANGE. A GID of
 * zeros empties the entry. The entry's type becomes RoCE v2, or on InfiniBand IBV_GID_TYPE_IB. gid
 * is copied. EINVAL also for an index that the table cannot have.
 */
int vb_sim_set_gid(struct ibv_context *context, unsigned int port_num, unsigned int index,
		   const union ibv_gid *gid);

/*
 * As vb_sim_set_gid(), with the entry's type (enum ibv_gid_type): IBV_GID_TYPE_ROCE_V2 or
 * IBV_GID_TYPE_ROCE_V1 on Ethernet, IBV_GID_TYPE_IB on InfiniBand. EINVAL also for another type,
 * and for RoCE v1 if the device's profile has no such GIDs (the profiles of SoftRoCE).
 */
int vb_sim_set_gid_type(struct ibv_context *context, unsigned int port_num, unsigned int index,
			const union ibv_gid *gid, uint32_t gid_type);

/*
 * Changes an entry of the P_Key table: IBV_EVENT_PKEY_CHANGE. pkey is in host order. EINVAL also
 * for an index that the table cannot have.
 */
int vb_sim_set_pkey(struct ibv_context *context, unsigned int port_num, unsigned int index,
		    uint16_t pkey);

/*
 * Raises an event that no other function causes: IBV_EVENT_CLIENT_REREGISTER or
 * IBV_EVENT_SM_CHANGE. EINVAL also for any other event.
 */
int vb_sim_port_event(struct ibv_context *context, unsigned int port_num, enum ibv_event_type type);

/*
 * Raises an event of a QP, CQ or SRQ, on each profile: event->event_type, such as IBV_EVENT_COMM_EST, of the
 * object in event->element. The event is one of the device: ibv_get_async_event(3) returns it, and until it is
 * acknowledged, destroying the object waits.
 *
 * IBV_EVENT_QP_FATAL, QP_REQ_ERR and QP_ACCESS_ERR move the QP to ERR, unless the QP is in RESET; with each
 * other event, the object stays as it is. EINVAL also for an event of a port or device, and for an object
 * that does not live.
 */
int vb_sim_object_event(const struct ibv_async_event *event);

/*
 * Ends the life of a device: IBV_EVENT_DEVICE_FATAL. Its QPs enter ERR, and it neither sends nor
 * receives from now on. Its objects can still be destroyed, and its contexts closed.
 */
int vb_sim_kill_device(struct ibv_context *context);

/* The name of a profile of struct vb_sim_device_config, from index 0 up, the default first; NULL at
 * the end. The string is constant. */
const char *vb_sim_profile_name(unsigned int index);

/*
 * Sets or reads a quirk of a device. A quirk is a behaviour in which adapters differ; false is what
 * the InfiniBand specification says. The profile decides the quirks at first. Set a quirk before
 * you make the objects that it concerns. EINVAL also if no quirk has that name.
 */
int vb_sim_set_quirk(struct ibv_context *context, const char *name, bool on);
int vb_sim_quirk(struct ibv_context *context, const char *name, bool *on);

/*
 * Returns the name of the quirk at index, from 0, and sets *about to what a device with the quirk
 * does; about may be NULL. Returns NULL behind the last quirk. The strings are constant.
 */
const char *vb_sim_quirk_name(unsigned int index, const char **about);

/*
 * Lowers a limit of a device, so that a test can exhaust it quickly. name is the field of
 * ibv_query_device(3): max_qp, max_qp_wr, max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd,
 * max_qp_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_mw, max_mcast_grp, max_mcast_qp_attach,
 * max_total_mcast_qp_attach, max_ah, max_srq, max_srq_wr or max_srq_sge. Objects that exist stay.
 * EINVAL also for another name, and for a value below 0 or above the present one.
 */
int vb_sim_lower_limit(struct ibv_context *context, const char *name, int value);

/* --- what is left, and what happened: for the end of a program or of a test --- */

enum vb_sim_finding_kind {
	/* The program has left something. */
	VB_SIM_LEFT_OBJECTS,	 /* `count` objects of the kind `name` are not destroyed */
	VB_SIM_LEFT_QP,		 /* the QP `number` of `qp_type` is not destroyed, in `qp_state` */
	VB_SIM_LEFT_SENDS,	 /* `count` sends of the QP `number` have not completed */
	VB_SIM_LEFT_RECEIVES,	 /* `count` receives of the QP or SRQ (`name`) have not completed */
	VB_SIM_LEFT_COMPLETIONS, /* `count` completions of the CQ `number` were never polled */
	VB_SIM_LEFT_EVENTS,	 /* `count` events of the channel with the descriptor `number` were
				      never read */
	VB_SIM_LEFT_ACKS,	 /* `count` completion events of the CQ `number` were read, and not
				      acknowledged */
	VB_SIM_LEFT_ASYNC_EVENTS, /* `count` asynchronous events `event` were never read */
	VB_SIM_LEFT_ASYNC_ACKS,	  /* `count` asynchronous events of the object `name` `number` were
				      read, and not acknowledged */
	/* Something has happened. */
	VB_SIM_CQ_OVERRUN, /* the CQ `number` has overrun, and takes no more completions */
	VB_SIM_DROPS,	   /* `count` packets were dropped for the cause `name`: `about` */
	VB_SIM_COUNTED,	   /* the counter `name` is `count` */
};

/* The fields that a kind does not name are 0. Strings are valid during the call. */
struct vb_sim_finding {
	enum vb_sim_finding_kind kind;
	const char *device; /* such as "sim0" */
	const char *name;   /* such as "MR", "qkey", "packets sent" */
	const char *about;
	uint32_t number; /* of a QP its QPN; of another object its handle */
	uint64_t count;
	enum ibv_qp_type qp_type;
	enum ibv_qp_state qp_state;
	enum ibv_event_type event;
};

/* Gets a finding. The world's lock is held: the function must not call any function of Verbena. */
typedef void vb_sim_finding_fn(void *arg, const struct vb_sim_finding *finding);

/*
 * Looks at all open devices of a world and calls fn for each finding. sim NULL means all worlds that
 * exist, and makes none; the child of fork(2) has those in which it has opened a device. Counters and drops are those of all devices, open or not. Returns how many
 * findings are of a kind VB_SIM_LEFT_*: 0 if the program has left nothing. fn may be NULL. So the
 * end of a test may be
 *
 *	assert(!vb_sim_report(NULL, print_finding, NULL));
 */
unsigned int vb_sim_report(struct vb_sim *sim, vb_sim_finding_fn *fn, void *arg);

/*
 * Writes a finding as a sentence without its device, such as "QP 0x11 (RC) is left in RTS", into text
 * of size_bytes bytes; 256 bytes hold each one. Returns text.
 */
const char *vb_sim_finding_text(const struct vb_sim_finding *finding, char *text,
				size_t size_bytes);

/* Counts of live objects, by kind. All are zero when the program has ended every object. */
struct vb_sim_objects {
	uint32_t contexts, pds, cqs, qps, srqs, mrs, ahs, channels, mws, dms, tds, xrcds;
};

/* Fills *objects with the counts of a world; with zeros if the default world cannot be made. */
void vb_sim_count_objects(struct vb_sim *sim, struct vb_sim_objects *objects);

#ifdef __cplusplus
}
#endif

#endif
