/* SPDX-License-Identifier: MIT */
/*
 * The simulated world: its devices and links, its clock, its seed.
 *
 * A process has one default world, made when the backend `sim` is first used; it is what
 * ibv_get_device_list() lists there. Functions that take a `struct vb_sim *` take NULL for it.
 * All functions may be called from any thread unless they say otherwise. Those that return int
 * return 0 or an errno value; vb_last_error() has the sentence.
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

/* No time: what vb_sim_next_ns() answers when nothing is to come. */
#define VB_SIM_NEVER UINT64_MAX

struct vb_sim;

enum vb_sim_clock {
	/*
	 * Posting queues work and waiting runs it; nothing sleeps. What waits is a verb: a blocking
	 * get of an event, an empty poll, a query that repeats its answer (of a port: unless the
	 * context made an object in between), or vb_sim_run(). poll(2), epoll or a sleep on a
	 * descriptor moves no time: a program that sleeps there before it calls the verb sleeps for
	 * ever, unless the event is queued already.
	 */
	VB_SIM_CLOCK_VIRTUAL,
	/* Time is CLOCK_MONOTONIC. It falls behind where the machine cannot do in time what is due. */
	VB_SIM_CLOCK_REAL,
};

/* One simulated device. Zeroed fields other than the name take the defaults in brackets. */
struct vb_sim_device_config {
	char name[VB_SIM_NAME_MAX];    /* "sim0" */
	char profile[VB_SIM_NAME_MAX]; /* which behaviour where adapters differ ["spec"] */
	/* Quirks that hold besides the profile's, as vb_sim_quirk_name() names them: "a,b" [none] */
	char quirks[VB_SIM_QUIRKS_TEXT];
	unsigned int ports; /* [1] */
	int link_layer;	    /* IBV_LINK_LAYER_ETHERNET [this] or IBV_LINK_LAYER_INFINIBAND */
	enum ibv_mtu mtu;   /* largest path MTU of the ports, active at once [IBV_MTU_4096] */
	/* Addresses of port 1. On Ethernet each is a GID of type RoCE v2: an IPv4 address is
	 * ::ffff:a.b.c.d. [10.0.0.N and fd00::N for the Nth device, from 1.] On InfiniBand they
	 * are GIDs beside the port's own. [None.] A link-local GID, made from the MAC or the port
	 * GUID, always stands before them at index 0. Behind all of them, on Ethernet and with the
	 * profiles "spec" and "mlx5", each stands once more as a GID of type RoCE v1. The ports of
	 * InfiniBand have the LIDs 1, 2, 3 and so on, in the order of the devices, with LMC 0. */
	unsigned int gid_count;
	union ibv_gid gids[VB_SIM_GIDS_MAX];
	unsigned int pkey_count;	  /* [1: 0xffff] */
	uint16_t pkeys[VB_SIM_PKEYS_MAX]; /* host order */
};

/* A cable between port 1 of two devices. */
struct vb_sim_link_config {
	char a[VB_SIM_NAME_MAX];
	char b[VB_SIM_NAME_MAX];
	uint64_t delay_ns;	  /* from one end to the other [0] */
	uint64_t bits_per_second; /* serialisation of each packet; 0 is unlimited [0] */
};

/*
 * A world. With device_count 0 it is two devices, sim0 and sim1. With link_count 0 every port
 * reaches every other without delay; with links given, only what they join is joined. A device
 * always reaches itself. Ethernet and InfiniBand never reach one another.
 */
struct vb_sim_config {
	enum vb_sim_clock clock;
	bool seed_given; /* else 1 on the virtual clock, the system's randomness on the real one */
	uint64_t seed;
	const char *trace; /* a pcap file to write from the start; NULL for none */
	unsigned int device_count;
	struct vb_sim_device_config devices[VB_SIM_DEVICES_MAX];
	unsigned int link_count;
	struct vb_sim_link_config links[VB_SIM_LINKS_MAX];
};

/*
 * Makes the default world anew from a configuration (NULL: the defaults above).
 *
 * EBUSY while a device of the default world is open. EINVAL for a name that is empty or given
 * twice, a link to no device, a profile, quirk or value that does not exist. config is copied.
 */
int vb_sim_configure(const struct vb_sim_config *config);

/*
 * What the default world is made from when it is first used and vb_sim_configure() was not called.
 * fn returns a configuration that stays until its next call, or NULL with errno, which is then the
 * error of the verb that asked; it is called under a lock and must call nothing that uses the default
 * world. fn NULL: the defaults above. A world that is there already stays as it is.
 */
typedef const struct vb_sim_config *vb_sim_default_fn(void);
void vb_sim_set_default(vb_sim_default_fn *fn);

/*
 * Makes a world beside the default one. NULL with errno as vb_sim_configure().
 * The caller ends it with vb_sim_close().
 */
struct vb_sim *vb_sim_open(const struct vb_sim_config *config);

/* Ends a world of vb_sim_open(). EBUSY while a device of it is open. */
int vb_sim_close(struct vb_sim *sim);

/* The world that an open device belongs to; NULL for a context of another backend. */
struct vb_sim *vb_sim_of(struct ibv_context *context);

/*
 * The devices of a world, as ibv_get_device_list(): the caller frees the list with
 * vb_free_device_list(). NULL with errno ENOMEM.
 */
struct ibv_device **vb_sim_device_list(struct vb_sim *sim, int *num_devices);

/* The world's time in nanoseconds since it was made. */
uint64_t vb_sim_now_ns(struct vb_sim *sim);

/* Which clock the world has. */
enum vb_sim_clock vb_sim_clock_of(struct vb_sim *sim);

/*
 * Waits on a virtual clock: takes at most num_entries completions of cq, running the world until
 * there is one or until timeout_ns have gone by (VB_SIM_NEVER: no limit). Time goes no further than
 * that, unlike with an empty poll, which goes to the next event. Returns how many were taken; 0
 * when the time is over; -1 with errno: EDEADLK where nothing can come, EIO for a CQ that has
 * overrun, EINVAL for one that is not simulated or whose world has the real clock.
 */
int vb_sim_wait_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns);

/*
 * For threads that have something else than the world between them, such as a queue in memory: who
 * changed it tells, and who waits for it waits for completions or for that. told is what
 * vb_sim_told() answered before the thread looked at the queue, so that nothing is missed:
 *
 *	told = vb_sim_told(sim);
 *	while (queue_is_empty() && !vb_sim_wait_cq_told(cq, 1, &wc, VB_SIM_NEVER, told))
 *		told = vb_sim_told(sim);
 *
 * It answers 0 as soon as vb_sim_told() is another, and is else as vb_sim_wait_cq(): EDEADLK where
 * no registered thread is left that could tell. On the real clock telling does nothing.
 */
void vb_sim_tell(struct vb_sim *sim);
uint64_t vb_sim_told(struct vb_sim *sim);
int vb_sim_wait_cq_told(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc, uint64_t timeout_ns,
			uint64_t told);

/* When the next thing happens of itself (a timer, a packet's arrival); VB_SIM_NEVER for nothing. */
uint64_t vb_sim_next_ns(struct vb_sim *sim);

/*
 * Runs the present instant to its end, then everything due within duration_ns, and leaves the
 * clock that much later. With duration_ns 0 only the present instant runs.
 * EINVAL on the real clock.
 */
int vb_sim_run(struct vb_sim *sim, uint64_t duration_ns);

/*
 * A thread that uses a world with a virtual clock beside other threads registers: time then moves
 * only while all registered threads wait. A world in which nobody registered has one user.
 */
void vb_sim_thread_enter(struct vb_sim *sim);
void vb_sim_thread_leave(struct vb_sim *sim);

/*
 * Writes every packet from now on to a pcap file, in nanoseconds of the world's clock: as Ethernet,
 * or in a world of InfiniBand as ERF (link type 197, type 21), each frame from its LRH to its VCRC.
 * A packet that is lost has the destination MAC 02:00:00:00:de:ad, or in ERF the flag of a receive
 * error. A trace that is already open ends with this one's start, and goes on where this one fails:
 * ENOTSUP where the world has devices of both link layers, since a file has one; the errno of
 * open(2) where the file cannot be made.
 */
int vb_sim_trace_open(struct vb_sim *sim, const char *path);

/* Writes out and closes the trace. EIO where some of it could not be written; 0 if none is open. */
int vb_sim_trace_close(struct vb_sim *sim);

/* Sees each frame as its port sends it, from the Ethernet header or the LRH on, without an ERF
 * header; frame is valid during the call only. */
typedef void vb_sim_frame_fn(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
			     bool lost);

/*
 * Calls fn for every frame, beside the pcap file; fn NULL ends it. fn must call nothing of
 * Verbena: the world's lock is held.
 */
void vb_sim_watch(struct vb_sim *sim, vb_sim_frame_fn *fn, void *arg);

/* What a device's ports counted since it was made. */
struct vb_sim_counters {
	uint64_t sent_packets;
	uint64_t received_packets;
	uint64_t lost_packets;	  /* sent here and lost on the way: faults, no such address */
	uint64_t dropped_packets; /* received here and dropped: QP, state, key, ICRC, sequence */
	uint64_t duplicate_requests;
	uint64_t out_of_sequence_requests;
	uint64_t rnr_naks_sent;
	uint64_t rnr_naks_received;
	uint64_t sequence_naks_sent;
	uint64_t sequence_naks_received;
	uint64_t ack_timeouts;
	uint64_t retransmitted_packets;
	uint64_t guarded_faults; /* application memory that could not be read or written */
};

/* EINVAL for a context that is not of a simulated device. */
int vb_sim_counters(struct ibv_context *context, struct vb_sim_counters *counters);

/*
 * A counter under the name, and with the meaning, that it has in SoftRoCE (Linux
 * drivers/infiniband/sw/rxe/rxe_hw_counters.c; there a file of
 * /sys/class/infiniband/DEVICE/ports/1/hw_counters). All ports of the device are in it. Not all are
 * fields of struct vb_sim_counters: sent_pkts has no packets that could not leave their port,
 * rcvd_pkts none that no QP takes. EINVAL for a context that is not of a simulated device or is
 * closed, and for a name that there is none of.
 */
int vb_sim_counter(struct ibv_context *context, const char *name, uint64_t *value);

/* The name of a counter and what it counts, from index 0 up in the kernel's order; NULL at the end.
 * about may be NULL. The strings are constant. */
const char *vb_sim_counter_name(unsigned int index, const char **about);

/*
 * Acting on the world, as a person at the rack or the subnet manager would. Each function takes an
 * open context of the device, counts ports from 1, and raises the asynchronous event that programs
 * know (ibv_get_async_event(3)) in every context of that device. EINVAL for a context that is
 * closed or not of a simulated device, and for a port that does not exist.
 */

/* Pulls the cable (IBV_EVENT_PORT_ERR) or puts it in again (IBV_EVENT_PORT_ACTIVE). What is sent
 * through a port that is down is lost. A state that the port has already changes nothing. */
int vb_sim_port_state(struct ibv_context *context, unsigned int port_num, bool up);

/* Gives the port another LID: IBV_EVENT_LID_CHANGE. */
int vb_sim_set_lid(struct ibv_context *context, unsigned int port_num, uint16_t lid);

/* Changes an entry of the GID table, which may be one behind its end: IBV_EVENT_GID_CHANGE. A GID
 * of zeros empties the entry. EINVAL for an index that the table cannot have. gid is copied. The
 * entry's type becomes RoCE v2, or on InfiniBand IBV_GID_TYPE_IB. */
int vb_sim_set_gid(struct ibv_context *context, unsigned int port_num, unsigned int index,
		   const union ibv_gid *gid);

/* The same with a type (enum ibv_gid_type): IBV_GID_TYPE_ROCE_V2 or IBV_GID_TYPE_ROCE_V1 on
 * Ethernet, IBV_GID_TYPE_IB on InfiniBand. EINVAL for any other, and for RoCE v1 where the profile
 * has none of it (those of SoftRoCE). */
int vb_sim_set_gid_type(struct ibv_context *context, unsigned int port_num, unsigned int index,
			const union ibv_gid *gid, uint32_t gid_type);

/* Changes an entry of the P_Key table (host order): IBV_EVENT_PKEY_CHANGE. EINVAL for an index
 * that the table cannot have. */
int vb_sim_set_pkey(struct ibv_context *context, unsigned int port_num, unsigned int index,
		    uint16_t pkey);

/* Raises an event that nothing else here causes: IBV_EVENT_CLIENT_REREGISTER or
 * IBV_EVENT_SM_CHANGE; EINVAL for any other. */
int vb_sim_port_event(struct ibv_context *context, unsigned int port_num, enum ibv_event_type type);

/* The device dies: IBV_EVENT_DEVICE_FATAL, its QPs go to ERR, and nothing moves in or out of it
 * any more. Its objects can still be destroyed and its contexts closed. */
int vb_sim_kill_device(struct ibv_context *context);

/* The name of a profile of struct vb_sim_device_config, from index 0 up, the default first; NULL at
 * the end. The string is constant. */
const char *vb_sim_profile_name(unsigned int index);

/*
 * A quirk is a behaviour in which adapters differ; false is what the specification says. Profiles
 * set them, and a test may set one of a device, before it makes the objects that it concerns.
 * EINVAL for a name that there is none of.
 */
int vb_sim_set_quirk(struct ibv_context *context, const char *name, bool on);
int vb_sim_quirk(struct ibv_context *context, const char *name, bool *on);

/*
 * Lowers a limit of a device, so that a test exhausts it at little cost. name is the field's in
 * ibv_query_device(3): max_qp, max_qp_wr, max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd,
 * max_qp_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_mw, max_mcast_grp, max_mcast_qp_attach,
 * max_total_mcast_qp_attach, max_ah, max_srq, max_srq_wr or max_srq_sge. What is there already
 * stays. EINVAL for another name, and for a value below 0 or above the present one.
 */
int vb_sim_lower_limit(struct ibv_context *context, const char *name, int value);

/* The name of a quirk and what is so where it holds, from index 0 up; NULL at the end. about may be
 * NULL. The strings are constant. */
const char *vb_sim_quirk_name(unsigned int index, const char **about);

/* Live objects of the default world or another, by kind; all zero when nothing leaks. */
struct vb_sim_objects {
	uint32_t contexts, pds, cqs, qps, srqs, mrs, ahs, channels, mws, dms, tds, xrcds;
};

void vb_sim_count_objects(struct vb_sim *sim, struct vb_sim_objects *objects);

#ifdef __cplusplus
}
#endif

#endif
