/* SPDX-License-Identifier: MIT */
/*
 * Devices, queue pairs and memory, from a name to a connection, in a few calls.
 *
 *	struct vb_device *device = vb_device_open_named(NULL, "sim0", 0, VB_GID_INDEX_ANY);
 *	struct ibv_pd *pd = vb_alloc_pd(device->context);
 *	struct vb_cq *cq = vb_cq_open(device, 32, NULL);
 *	struct vb_prepared_qp *prepared = vb_qp_prepare(device, pd, cq->cq, cq->cq, NULL);
 *
 *	send *vb_prepared_endpoint(prepared) to the peer and get the peer's, then
 *
 *	struct ibv_qp *qp = vb_handshake(prepared, &remote);
 *
 * What comes out are libibverbs' own objects, for <verbena/verbs.h>; the same program runs on every
 * backend. The data path is ibv_post_send(3), ibv_post_recv(3) and ibv_poll_cq(3), or
 * <verbena/channel.h>.
 *
 * Errors. Functions that return int return 0 or an errno value unless they say otherwise, those
 * that return a pointer return NULL and set errno. Both leave a sentence for vb_last_error() that
 * begins with the kind of the failure (<verbena/error.h>) and names the verb, the object and the
 * cause. A call that fails changes nothing. Beside the errno values that are named here, those of
 * the verbs underneath come through.
 *
 * Ownership. Each object is ended by the function named beside its creator, after everything that
 * was made from it. Structures passed in are read before the call returns and not kept.
 *
 * Threads. All functions may be called from any thread. Changing a configuration, and anything with
 * an object that another thread ends at the time, is for one thread at a time.
 *
 * Waiting. Timeouts are in nanoseconds of the backend's clock: on the simulator's virtual clock a
 * wait runs the simulated time, so it costs none of ours, and with no limit it answers EDEADLK
 * when nothing can come any more. VB_FOREVER is no limit, 0 only looks.
 */
#ifndef VERBENA_CONNECT_H
#define VERBENA_CONNECT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <verbena/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VB_FOREVER UINT64_MAX

/* --- devices --- */

#define VB_DEVICE_NAME_MAX 64

/* What is known of a device without opening it. */
struct vb_device_info {
	char name[VB_DEVICE_NAME_MAX]; /* such as "sim0"; unique on this machine */
	uint64_t guid;		       /* of the node, host byte order; 0: unknown */
	int index;		       /* the kernel's, stable; -1: there is none */
	struct ibv_device *device;     /* for vb_device_open() */
};

/* A list of devices as it was when it was taken. */
struct vb_devices;

/*
 * Takes the list of a backend's devices (NULL: VERBENA_BACKEND, else "sim"), in the backend's
 * order. An empty list is an answer. Ended by vb_devices_put(); what was opened from it stays open.
 * Errors: as vb_get_device_list().
 * Source: man ibv_get_device_list(3).
 */
struct vb_devices *vb_devices_get(const char *backend);
void vb_devices_put(struct vb_devices *devices);

unsigned int vb_devices_count(const struct vb_devices *devices);

/* The device of an index from 0, or of a name; they belong to the list. NULL: there is none (errno
 * ENODEV, and for a name vb_last_error() lists those that there are). */
const struct vb_device_info *vb_devices_at(const struct vb_devices *devices, unsigned int index);
const struct vb_device_info *vb_devices_named(const struct vb_devices *devices, const char *name);

/* Chooses the first GID of type RoCE v2 with an IPv4 address, else of RoCE v2, else index 0. */
#define VB_GID_INDEX_ANY (-1)

/* An open device, with the port and the GID that connections use. Read only. */
struct vb_device {
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr; /* as it was when the device was opened */
	union ibv_gid gid;
	uint8_t port_num;
	int gid_index;
};

/*
 * Opens a device and checks the port: it must be ACTIVE or ARMED, since the GID table means nothing
 * before (man ibv_query_gid(3)). port_num counts from 1; 0 is port 1. gid_index may be
 * VB_GID_INDEX_ANY. Ended by vb_device_close(). The sentence of a failure says which step it was.
 * Errors: ENODEV (no device of that name), EINVAL (no such port), ENETDOWN (the port is in another
 * state), ENODATA (the GID is empty), and those of ibv_open_device(3), ibv_query_port(3) and
 * ibv_query_gid(3).
 */
struct vb_device *vb_device_open(struct ibv_device *device, uint8_t port_num, int gid_index);
struct vb_device *vb_device_open_named(const char *backend, const char *name, uint8_t port_num,
				       int gid_index);

/* Closes it. 0 or errno; as with ibv_close_device(3), end what was made in it first. */
int vb_device_close(struct vb_device *device);

/* --- completion queues --- */

/* A CQ with what waiting needs. Read only. */
struct vb_cq {
	struct ibv_cq *cq;		  /* cq_context is id */
	struct ibv_comp_channel *channel; /* its descriptor is readable after a notification */
	void *id;			  /* the caller's */
};

/*
 * Creates a CQ of at least cqe entries that carries the caller's id. Ended by vb_cq_close(), which
 * answers EBUSY while a QP uses it. Errors: EINVAL (cqe below 1 or above the device's max_cqe),
 * ENOMEM.
 * Source: man ibv_create_cq(3).
 */
struct vb_cq *vb_cq_open(struct vb_device *device, int cqe, void *id);
int vb_cq_close(struct vb_cq *cq);

/*
 * Takes at most count completions, oldest first, into the caller's array. Returns how many (0:
 * there was none) or a negative errno (-EIO: the CQ has overrun). On a virtual clock an empty poll
 * moves time to the next event.
 * Source: man ibv_poll_cq(3).
 */
int vb_cq_poll(struct vb_cq *cq, struct ibv_wc *wc, int count);

/*
 * As vb_cq_poll(), but waits until there is one. Returns how many, or a negative errno: -ETIMEDOUT,
 * -EDEADLK (virtual clock, no limit, and nothing can come), -EIO. It asks for notifications and
 * takes them from the channel, so one thread at a time waits on a CQ; others may poll.
 */
int vb_cq_wait(struct vb_cq *cq, struct ibv_wc *wc, int count, uint64_t timeout_ns);

/* --- memory regions --- */

/* Local write, remote write, remote read and, where the device has them, remote atomics. */
#define VB_ACCESS_DEFAULT (-1)

/* Registered memory. Read only. */
struct vb_region {
	struct ibv_mr *mr;
	void *addr;
	size_t length_bytes;
	bool checked; /* see vb_region_alloc() */
	struct vb_region_guard *guard;
};

/*
 * Allocates and registers zeroed memory that begins at a page. access is a set of enum
 * ibv_access_flags or VB_ACCESS_DEFAULT. Ended by vb_region_free(). Errors: EINVAL (no length, or
 * flags that do not go together), ENOMEM.
 *
 * The region is checked in a library built with AddressSanitizer, and where VERBENA_CHECKED is set
 * to anything but "" or "0": the pages are then mapped twice, once for the program and once for the
 * device, so that the program's may be closed while a channel has work in them. During a receive, a
 * read or an atomic, whole pages of the buffer are closed (SIGSEGV at any touch) and, under
 * AddressSanitizer, each byte of it is poisoned; during a send or write, whole pages are read-only.
 * Bytes of a page that is not wholly the buffer's are seen by AddressSanitizer alone. On a kernel
 * that refuses such a mapping the region is not checked; the field says so.
 * Source: man ibv_reg_mr(3), memfd_create(2), mprotect(2).
 */
struct vb_region *vb_region_alloc(struct vb_device *device, struct ibv_pd *pd, size_t length_bytes,
				  int access);

/* Registers the caller's memory, which must outlive the region. Never checked: its pages may hold
 * other data. Ended by vb_region_free(). Errors as vb_region_alloc(), and EFAULT. */
struct vb_region *vb_region_register(struct vb_device *device, struct ibv_pd *pd, void *addr,
				     size_t length_bytes, int access);

/* Deregisters a region, and frees what vb_region_alloc() allocated. EBUSY while a channel has work
 * in it or a memory window is bound to it. */
int vb_region_free(struct vb_region *region);

/* What a peer must know to read or write a piece of a region: a value, to be sent. */
struct vb_remote {
	uint64_t addr;
	uint64_t length_bytes;
	uint32_t rkey;
};

#define VB_REMOTE_BYTES 24

/* The key of length_bytes from offset_bytes of a region. EINVAL: they are not in it. */
int vb_region_remote(const struct vb_region *region, size_t offset_bytes, size_t length_bytes,
		     struct vb_remote *remote);

/* A part of a remote piece. EINVAL: it is not in it. */
int vb_remote_part(const struct vb_remote *whole, uint64_t offset_bytes, uint64_t length_bytes,
		   struct vb_remote *part);

/*
 * The wire format of a remote key, version 1, big-endian: "VBR" and 1 (4 bytes), rkey (4), addr
 * (8), length (8). Decoding answers EMSGSIZE for another length, EPROTO for another beginning,
 * EPROTONOSUPPORT for another version, EBADMSG where addr + length overflows.
 */
void vb_remote_encode(const struct vb_remote *remote, uint8_t bytes[VB_REMOTE_BYTES]);
int vb_remote_decode(const void *bytes, size_t length_bytes, struct vb_remote *remote);

/* --- configuration of a queue pair --- */

/* RNR NAK timers by name (man ibv_modify_qp(3); values of enum in kernel rdma/ib_verbs.h). */
enum vb_rnr_timer {
	VB_RNR_655_36_MS,
	VB_RNR_0_01_MS,
	VB_RNR_0_02_MS,
	VB_RNR_0_03_MS,
	VB_RNR_0_04_MS,
	VB_RNR_0_06_MS,
	VB_RNR_0_08_MS,
	VB_RNR_0_12_MS,
	VB_RNR_0_16_MS,
	VB_RNR_0_24_MS,
	VB_RNR_0_32_MS,
	VB_RNR_0_48_MS,
	VB_RNR_0_64_MS,
	VB_RNR_0_96_MS,
	VB_RNR_1_28_MS,
	VB_RNR_1_92_MS,
	VB_RNR_2_56_MS,
	VB_RNR_3_84_MS,
	VB_RNR_5_12_MS,
	VB_RNR_7_68_MS,
	VB_RNR_10_24_MS,
	VB_RNR_15_36_MS,
	VB_RNR_20_48_MS,
	VB_RNR_30_72_MS,
	VB_RNR_40_96_MS,
	VB_RNR_61_44_MS,
	VB_RNR_81_92_MS,
	VB_RNR_122_88_MS,
	VB_RNR_163_84_MS,
	VB_RNR_245_76_MS,
	VB_RNR_327_68_MS,
	VB_RNR_491_52_MS,
};

/* The duration of a timer, and the shortest timer that is not shorter than a duration. ERANGE above
 * 655.36 ms, EINVAL for a value that is none. */
int vb_rnr_timer_to_ns(unsigned int timer, uint64_t *duration_ns);
int vb_rnr_timer_from_ns(uint64_t duration_ns, unsigned int *timer);

/* The same of the ack timeout, 4.096 us * 2^value (man ibv_modify_qp(3)). Value 0 waits for ever
 * and is VB_FOREVER ns; the longest other one, 31, is about 8800 s. 0 ns is value 1, since no
 * timeout is shorter. */
int vb_ack_timeout_to_ns(unsigned int timeout, uint64_t *duration_ns);
int vb_ack_timeout_from_ns(uint64_t duration_ns, unsigned int *timeout);

#define VB_RNR_RETRY_INFINITE  7
#define VB_PORT_OF_DEVICE      0	 /* as vb_device_open() was told */
#define VB_GID_INDEX_OF_DEVICE 256	 /* the same */
#define VB_MTU_OF_PORT	       0	 /* the port's active MTU */
#define VB_PSN_OF_PEER	       0x1000000 /* what the peer's endpoint says */

/* The settings; each is the field of the same name. */
enum vb_qp_setting {
	VB_QP_TYPE,
	VB_QP_ACCESS,
	VB_QP_MAX_SEND_WR,
	VB_QP_MAX_RECV_WR,
	VB_QP_MAX_SEND_SGE,
	VB_QP_MAX_RECV_SGE,
	VB_QP_MAX_INLINE_DATA,
	VB_QP_MIN_RNR_TIMER,
	VB_QP_TIMEOUT,
	VB_QP_RETRY_CNT,
	VB_QP_RNR_RETRY,
	VB_QP_PATH_MTU,
	VB_QP_SQ_PSN,
	VB_QP_RQ_PSN,
	VB_QP_MAX_RD_ATOMIC,
	VB_QP_MAX_DEST_RD_ATOMIC,
	VB_QP_PORT_NUM,
	VB_QP_GID_INDEX,
	VB_QP_PKEY_INDEX,
	VB_QP_SERVICE_LEVEL,
	VB_QP_TRAFFIC_CLASS,
	VB_QP_HOP_LIMIT,
	VB_QP_QKEY,
	VB_QP_SETTINGS,
};

/*
 * How a QP is made and connected. vb_qp_config_init() sets the defaults in brackets, which are
 * those of the Rust builders that these settings come from; vb_qp_config_set() refuses what is out
 * of range, and so does vb_qp_prepare() for fields that were written by hand.
 */
struct vb_qp_config {
	uint32_t type;		     /* IBV_QPT_RC, _UC or _UD [RC] */
	uint32_t access;	     /* local write, remote write, read, atomic [local write] */
	uint32_t max_send_wr;	     /* 0..2^20 [16] */
	uint32_t max_recv_wr;	     /* 0..2^20 [16]; not used with an SRQ */
	uint32_t max_send_sge;	     /* 0..256 [16] */
	uint32_t max_recv_sge;	     /* 0..256 [16] */
	uint32_t max_inline_data;    /* bytes, 0..65536 [0] */
	uint32_t min_rnr_timer;	     /* enum vb_rnr_timer [VB_RNR_2_56_MS] */
	uint32_t timeout;	     /* of an ack, 0..31 [4: 65.536 us]; 14 is usual on a network */
	uint32_t retry_cnt;	     /* 0..7 [6] */
	uint32_t rnr_retry;	     /* 0..6, or VB_RNR_RETRY_INFINITE [6] */
	uint32_t path_mtu;	     /* enum ibv_mtu, or VB_MTU_OF_PORT [this] */
	uint32_t sq_psn;	     /* 24 bits [0] */
	uint32_t rq_psn;	     /* 24 bits, or VB_PSN_OF_PEER [this] */
	uint32_t max_rd_atomic;	     /* 0..255 [1] */
	uint32_t max_dest_rd_atomic; /* 0..255 [1] */
	uint32_t port_num;	     /* 1..255, or VB_PORT_OF_DEVICE [this] */
	uint32_t gid_index;	     /* 0..255, or VB_GID_INDEX_OF_DEVICE [this] */
	uint32_t pkey_index;	     /* 0..65535 [0] */
	uint32_t service_level;	     /* 0..15 [0] */
	uint32_t traffic_class;	     /* 0..255 [0] */
	uint32_t hop_limit;	     /* 0..255 [255] */
	uint32_t qkey;		     /* of UD, 0..2^31-1 [0x11111111] */
	struct ibv_srq *srq;	     /* [NULL] */
	void *qp_context;	     /* the caller's [NULL] */
};

void vb_qp_config_init(struct vb_qp_config *config);

/* Sets one value. ERANGE: it is out of range, and the sentence names the setting, the value and the
 * range; EINVAL: there is no such setting. */
int vb_qp_config_set(struct vb_qp_config *config, enum vb_qp_setting setting, uint64_t value);

/* Adds remote write and remote read to the access flags. */
void vb_qp_config_allow_remote_rw(struct vb_qp_config *config);

/* The two durations, rounded up to the next value that there is. ERANGE: there is none. */
int vb_qp_config_set_timeout_ns(struct vb_qp_config *config, uint64_t duration_ns);
int vb_qp_config_set_min_rnr_timer_ns(struct vb_qp_config *config, uint64_t duration_ns);

/* The name of a setting, that of its field, or NULL for none; and the setting of a name, or
 * VB_QP_SETTINGS. */
const char *vb_qp_setting_name(enum vb_qp_setting setting);
enum vb_qp_setting vb_qp_setting_named(const char *name);

/* --- endpoints --- */

/* Where a QP can be reached: what its peer must know. A value. */
struct vb_endpoint {
	uint32_t qpn; /* 24 bits */
	uint16_t lid; /* 0 on Ethernet */
	union ibv_gid gid;
	uint32_t psn; /* of the first packet that this end sends, 24 bits */
	enum ibv_mtu mtu;
};

#define VB_ENDPOINT_BYTES    32
#define VB_ENDPOINT_TEXT_MAX 128

/*
 * The wire format, version 1, big-endian: "VBE" and 1 (4 bytes), mtu as enum ibv_mtu (1), 0 (1),
 * lid (2), qpn (4), psn (4), gid (16). Later versions stay within 40 bytes. Decoding answers
 * EMSGSIZE for another length, EPROTO for another beginning, EPROTONOSUPPORT for another version,
 * EBADMSG for a value out of range.
 */
void vb_endpoint_encode(const struct vb_endpoint *endpoint, uint8_t bytes[VB_ENDPOINT_BYTES]);
int vb_endpoint_decode(const void *bytes, size_t length_bytes, struct vb_endpoint *endpoint);

/*
 * The same as text: "qpn=0x11,lid=0,gid=::ffff:10.0.0.1,psn=0x64,mtu=4096". Printing returns the
 * text. Parsing takes the five in any order, each once, numbers as strtoul(3) reads them; EINVAL
 * with a sentence that names the part which is wrong.
 */
const char *vb_endpoint_print(const struct vb_endpoint *endpoint, char text[VB_ENDPOINT_TEXT_MAX]);
int vb_endpoint_parse(const char *text, struct vb_endpoint *endpoint);

bool vb_endpoint_equal(const struct vb_endpoint *a, const struct vb_endpoint *b);

/* --- connecting --- */

/* A QP that is made and not connected. */
struct vb_prepared_qp;

/*
 * Makes a QP in state RESET after config (NULL: the defaults), and asks the port for its present
 * LID, GID and MTU. Ended by vb_handshake(), or by vb_prepared_drop(). Errors: ERANGE (a setting,
 * named), EINVAL (a CQ is missing; above the device's limits; an SRQ with UC), EOPNOTSUPP (the
 * device does not have that type), ENETDOWN (the port), ENOMEM, EPERM.
 * Source: man ibv_create_qp(3).
 */
struct vb_prepared_qp *vb_qp_prepare(struct vb_device *device, struct ibv_pd *pd,
				     struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
				     const struct vb_qp_config *config);

/* Destroys the QP. 0 or errno, as ibv_destroy_qp(3); NULL is ignored. */
int vb_prepared_drop(struct vb_prepared_qp *prepared);

/* Its endpoint, for the peer, and its QP; both belong to it. */
const struct vb_endpoint *vb_prepared_endpoint(const struct vb_prepared_qp *prepared);
struct ibv_qp *vb_prepared_qp(const struct vb_prepared_qp *prepared);

/*
 * Takes the QP through INIT, RTR and RTS, towards the peer's endpoint, and gives it back ready; the
 * caller ends it with vb_destroy_qp(), and the prepared QP is gone. The path MTU is the smaller of
 * the two ends'. A UD QP takes no address from remote, which may be NULL; see vb_endpoint_ah().
 * On failure (NULL, errno) the QP is in RESET again and the prepared QP still there. Errors: EINVAL
 * (an attribute that the device refuses), EBADMSG (an endpoint with values out of range),
 * ENETUNREACH and ETIMEDOUT (no way to its address). That the peer is really there is seen at the
 * first message only.
 * Source: man ibv_modify_qp(3).
 */
struct ibv_qp *vb_handshake(struct vb_prepared_qp *prepared, const struct vb_endpoint *remote);

/* An address handle to an endpoint, for sends of a UD QP of this configuration (NULL: the defaults)
 * to remote->qpn. Ended by vb_destroy_ah(). Source: man ibv_create_ah(3). */
struct ibv_ah *vb_endpoint_ah(struct vb_device *device, struct ibv_pd *pd,
			      const struct vb_qp_config *config, const struct vb_endpoint *remote);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_CONNECT_H */
