/* SPDX-License-Identifier: MIT */
/*
 * From a device's name to a connected queue pair (QP) and registered memory in a few calls.
 *
 *	struct vb_device *device = vb_device_open_named(NULL, "sim0", 0, VB_GID_INDEX_ANY);
 *	struct ibv_pd *pd = vb_alloc_pd(device->context);
 *	struct vb_cq *cq = vb_cq_open(device, 32, NULL);
 *	struct vb_prepared_qp *prepared = vb_qp_prepare(device, pd, cq->cq, cq->cq, NULL);
 *
 *	... send *vb_prepared_endpoint(prepared) to the peer and receive the peer's endpoint ...
 *	struct ibv_qp *qp = vb_handshake(prepared, &remote);
 *
 * The results are libibverbs' own objects, for use with <verbena/verbs.h>; the same program runs on
 * every backend. To move data, call ibv_post_send(3), ibv_post_recv(3) and ibv_poll_cq(3), or use
 * <verbena/channel.h>.
 *
 * Errors. A function that returns int returns 0 or an errno value unless its comment says
 * otherwise. A function that returns a pointer returns NULL and sets errno. Both leave a sentence
 * for vb_last_error(), which begins with the kind of the failure (<verbena/error.h>) and names the
 * verb, the object and the cause. A call that fails changes nothing. A function may also fail with
 * an errno value of the verbs that it calls.
 *
 * Ownership. The comment of each creating function names the function that ends the object. End an
 * object after everything that was made from it. Structures passed in are read before the call
 * returns; the library keeps no pointer to them.
 *
 * Threads. Any thread may call any function. Only one thread at a time may change a configuration,
 * and no other thread may use an object while it is being ended.
 *
 * Waiting. Timeouts are in nanoseconds of the backend's clock. On the simulator's virtual clock a
 * wait advances the simulated time and takes almost no real time; a wait without limit (VB_FOREVER)
 * fails with EDEADLK if no event is left that could end it. A timeout of 0 looks once.
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

/* A device that has not been opened. */
struct vb_device_info {
	char name[VB_DEVICE_NAME_MAX]; /* such as "sim0"; unique on this machine */
	uint64_t guid;		       /* the node GUID in host byte order; 0 if unknown */
	int index;		       /* the kernel's stable index; -1 if it has none */
	struct ibv_device *device;     /* for vb_device_open() */
};

/* The devices of a backend at the time of vb_devices_get(). */
struct vb_devices;

/*
 * Lists the devices of a backend in the backend's order. backend NULL is the value of
 * VERBENA_BACKEND, or "sim" if that is not set. The list may be empty. Ended by vb_devices_put();
 * devices opened from the list stay open. Errors: as vb_get_device_list().
 * Source: man ibv_get_device_list(3).
 */
struct vb_devices *vb_devices_get(const char *backend);
void vb_devices_put(struct vb_devices *devices);

unsigned int vb_devices_count(const struct vb_devices *devices);

/* Finds a device by its index, from 0, or by its name. The result belongs to the list. Fails with
 * ENODEV; for a name, vb_last_error() lists the names of all devices. */
const struct vb_device_info *vb_devices_at(const struct vb_devices *devices, unsigned int index);
const struct vb_device_info *vb_devices_named(const struct vb_devices *devices, const char *name);

/* Selects the first RoCE v2 GID with an IPv4 address, else the first RoCE v2 GID, else index 0. */
#define VB_GID_INDEX_ANY (-1)

/* An open device with the port and the GID that its connections use. Read only. */
struct vb_device {
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr; /* at the time of opening */
	union ibv_gid gid;
	uint8_t port_num;
	int gid_index;
};

/*
 * Opens a device. Its port must be ACTIVE or ARMED, since the GID table is valid only then (man
 * ibv_query_gid(3)). Ports count from 1; port_num 0 is port 1. gid_index may be VB_GID_INDEX_ANY.
 * Ended by vb_device_close(). The sentence of a failure names the step that failed.
 * Errors: ENODEV (no device has that name), EINVAL (no such port), ENETDOWN (the port is in another
 * state), ENODATA (the GID is empty), and those of ibv_open_device(3), ibv_query_port(3) and
 * ibv_query_gid(3).
 */
struct vb_device *vb_device_open(struct ibv_device *device, uint8_t port_num, int gid_index);
struct vb_device *vb_device_open_named(const char *backend, const char *name, uint8_t port_num,
				       int gid_index);

/* Closes the device. End all objects of the device first, as for ibv_close_device(3). */
int vb_device_close(struct vb_device *device);

/* --- completion queues --- */

/* A completion queue (CQ) and the completion channel for waiting on it. Read only. */
struct vb_cq {
	struct ibv_cq *cq;		  /* its cq_context is id */
	struct ibv_comp_channel *channel; /* its descriptor becomes readable on a notification */
	void *id;			  /* for the caller's use */
};

/*
 * Creates a CQ with at least cqe entries. Ended by vb_cq_close(), which fails with EBUSY while a QP
 * uses the CQ. Errors: EINVAL (cqe is below 1 or above the device's max_cqe), ENOMEM.
 * Source: man ibv_create_cq(3).
 */
struct vb_cq *vb_cq_open(struct vb_device *device, int cqe, void *id);
int vb_cq_close(struct vb_cq *cq);

/*
 * Moves at most count completions, the oldest first, into the array wc. Returns the number of
 * completions, which may be 0, or a negative errno (-EIO: the CQ has overrun). On a virtual clock a
 * poll that finds nothing advances time to the next event.
 * Source: man ibv_poll_cq(3).
 */
int vb_cq_poll(struct vb_cq *cq, struct ibv_wc *wc, int count);

/*
 * As vb_cq_poll(), but waits for the first completion. Returns the number of completions, or a
 * negative errno: -ETIMEDOUT, -EDEADLK (virtual clock, no limit, and no event is left), -EIO. The
 * wait requests notifications and reads them from the channel, so only one thread at a time may
 * wait on a CQ; other threads may poll it meanwhile.
 */
int vb_cq_wait(struct vb_cq *cq, struct ibv_wc *wc, int count, uint64_t timeout_ns);

/* --- memory regions --- */

/* Local write, remote write, remote read and, if the device has them, remote atomics. */
#define VB_ACCESS_DEFAULT (-1)

/* Registered memory. Read only. */
struct vb_region {
	struct ibv_mr *mr;
	void *addr;
	size_t length_bytes;
	bool checked; /* as vb_region_alloc() describes */
	struct vb_region_guard *guard;
};

/*
 * Allocates zeroed memory that begins at a page, and registers it. access is a set of enum
 * ibv_access_flags or VB_ACCESS_DEFAULT. Ended by vb_region_free(). Errors: EINVAL (length 0, or
 * flags that exclude each other), ENOMEM.
 *
 * The region is checked if the library was built with AddressSanitizer or the variable
 * VERBENA_CHECKED is set to anything but "" or "0". The pages of a checked region are mapped twice,
 * for the program and for the device, so that the program's mapping can be closed while a channel
 * has work in it:
 *   - During a receive, a read or an atomic, any access of the program to a whole page of the
 * buffer
 *     raises SIGSEGV; under AddressSanitizer each byte of the buffer is poisoned as well.
 *   - During a send or write, whole pages of the buffer are read-only.
 * Only AddressSanitizer sees accesses to pages that belong to the buffer in part. A kernel may
 * refuse the second mapping; then the region is not checked, and the field `checked` is false.
 * Source: man ibv_reg_mr(3), memfd_create(2), mprotect(2).
 */
struct vb_region *vb_region_alloc(struct vb_device *device, struct ibv_pd *pd, size_t length_bytes,
				  int access);

/* Registers the caller's memory, which must outlive the region. The region is never checked, since
 * its pages may hold other data. Ended by vb_region_free(). Errors: as vb_region_alloc(), and
 * EFAULT (addr is not mapped). */
struct vb_region *vb_region_register(struct vb_device *device, struct ibv_pd *pd, void *addr,
				     size_t length_bytes, int access);

/* Deregisters a region and frees the memory that vb_region_alloc() allocated. Fails with EBUSY
 * while a channel has work in the region or a memory window is bound to it. */
int vb_region_free(struct vb_region *region);

/* The address and key with which a peer reads or writes a piece of a region. Send it to the
 * peer. */
struct vb_remote {
	uint64_t addr;
	uint64_t length_bytes;
	uint32_t rkey;
};

#define VB_REMOTE_BYTES 24

/* Describes length_bytes from offset_bytes on. Fails with EINVAL if they are outside the region. */
int vb_region_remote(const struct vb_region *region, size_t offset_bytes, size_t length_bytes,
		     struct vb_remote *remote);

/* Describes a part of a remote piece. Fails with EINVAL if the part is outside the piece. */
int vb_remote_part(const struct vb_remote *whole, uint64_t offset_bytes, uint64_t length_bytes,
		   struct vb_remote *part);

/*
 * Encode and decode a remote piece. Format, version 1, big-endian: "VBR" and 1 (4 bytes), rkey (4),
 * addr (8), length (8). Decoding fails with EMSGSIZE (another length), EPROTO (other first bytes),
 * EPROTONOSUPPORT (another version) or EBADMSG (addr + length overflows).
 */
void vb_remote_encode(const struct vb_remote *remote, uint8_t bytes[VB_REMOTE_BYTES]);
int vb_remote_decode(const void *bytes, size_t length_bytes, struct vb_remote *remote);

/* --- configuration of a queue pair --- */

/* RNR NAK timers by name: man ibv_modify_qp(3), and enum ib_rnr_timeout in Linux's
 * include/rdma/ib_verbs.h. */
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

/* Convert an RNR NAK timer to its duration, and a duration to the shortest timer that lasts at
 * least as long. Errors: EINVAL (timer is above 31), ERANGE (duration_ns is above 655.36 ms). */
int vb_rnr_timer_to_ns(unsigned int timer, uint64_t *duration_ns);
int vb_rnr_timer_from_ns(uint64_t duration_ns, unsigned int *timer);

/* The same for the ack timeout, which lasts 4.096 us * 2^value (man ibv_modify_qp(3)). Value 0 has
 * no limit: VB_FOREVER ns. Value 1 is the shortest timeout; value 31 the longest, about 8800 s. */
int vb_ack_timeout_to_ns(unsigned int timeout, uint64_t *duration_ns);
int vb_ack_timeout_from_ns(uint64_t duration_ns, unsigned int *timeout);

#define VB_RNR_RETRY_INFINITE  7
#define VB_PORT_OF_DEVICE      0	 /* vb_device.port_num */
#define VB_GID_INDEX_OF_DEVICE 256	 /* vb_device.gid_index */
#define VB_PKEY_INDEX_DEFAULT  65536	 /* where the port has its default P_Key, 0xffff; else 0 */
#define VB_MTU_OF_PORT	       0	 /* the port's active MTU */
#define VB_PSN_OF_PEER	       0x1000000 /* vb_endpoint.psn of the peer */

/* The settings. Each stands for the field of struct vb_qp_config with the same name. */
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
 * How a QP is made and connected. vb_qp_config_init() sets the defaults, which stand in brackets;
 * they are the defaults of the Rust builders that these settings come from (docs/seeds.md).
 * vb_qp_config_set() refuses values out of range; so does vb_qp_prepare(), for fields that the
 * program has written itself.
 */
struct vb_qp_config {
	uint32_t type;		     /* IBV_QPT_RC, _UC or _UD [RC] */
	uint32_t access;	     /* local write, remote write, read, atomic [local write] */
	uint32_t max_send_wr;	     /* 0..2^20 [16] */
	uint32_t max_recv_wr;	     /* 0..2^20 [16]; ignored if there is an SRQ */
	uint32_t max_send_sge;	     /* 0..256 [16] */
	uint32_t max_recv_sge;	     /* 0..256 [16] */
	uint32_t max_inline_data;    /* bytes, 0..65536 [0] */
	uint32_t min_rnr_timer;	     /* enum vb_rnr_timer [VB_RNR_2_56_MS] */
	uint32_t timeout;	     /* ack timeout, 0..31 [4: 65.536 us]; networks use 14 */
	uint32_t retry_cnt;	     /* 0..7 [6] */
	uint32_t rnr_retry;	     /* 0..6, or VB_RNR_RETRY_INFINITE [6] */
	uint32_t path_mtu;	     /* enum ibv_mtu, or VB_MTU_OF_PORT [this] */
	uint32_t sq_psn;	     /* 24 bits [0] */
	uint32_t rq_psn;	     /* 24 bits, or VB_PSN_OF_PEER [this] */
	uint32_t max_rd_atomic;	     /* 0..255 [1] */
	uint32_t max_dest_rd_atomic; /* 0..255 [1] */
	uint32_t port_num;	     /* 1..255, or VB_PORT_OF_DEVICE [this] */
	uint32_t gid_index;	     /* 0..255, or VB_GID_INDEX_OF_DEVICE [this] */
	uint32_t pkey_index;	     /* 0..65535, or VB_PKEY_INDEX_DEFAULT [this] */
	uint32_t service_level;	     /* 0..15 [0] */
	uint32_t traffic_class;	     /* 0..255 [0] */
	uint32_t hop_limit;	     /* 0..255 [255] */
	uint32_t qkey;		     /* of a UD QP, 0..2^31-1 [0x11111111] */
	struct ibv_srq *srq;	     /* [NULL] */
	void *qp_context;	     /* for the caller's use [NULL] */
};

void vb_qp_config_init(struct vb_qp_config *config);

/* Sets one value. Errors: ERANGE (the sentence names setting, value and range), EINVAL (there is no
 * such setting). */
int vb_qp_config_set(struct vb_qp_config *config, enum vb_qp_setting setting, uint64_t value);

/* Adds remote write and remote read to config->access. */
void vb_qp_config_allow_remote_rw(struct vb_qp_config *config);

/* Set timeout or min_rnr_timer to the shortest value that lasts at least duration_ns. Fails with
 * ERANGE if no value does. */
int vb_qp_config_set_timeout_ns(struct vb_qp_config *config, uint64_t duration_ns);
int vb_qp_config_set_min_rnr_timer_ns(struct vb_qp_config *config, uint64_t duration_ns);

/* The name of a setting, which is its field's name (NULL: there is no such setting), and the
 * setting with a name (VB_QP_SETTINGS: there is none). */
const char *vb_qp_setting_name(enum vb_qp_setting setting);
enum vb_qp_setting vb_qp_setting_named(const char *name);

/* --- endpoints --- */

/* The address of a QP: what its peer needs to connect to it. */
struct vb_endpoint {
	uint32_t qpn; /* 24 bits */
	uint16_t lid; /* 0 on Ethernet */
	union ibv_gid gid;
	uint32_t psn; /* of the first packet that this QP sends, 24 bits */
	enum ibv_mtu mtu;
};

#define VB_ENDPOINT_BYTES    32
#define VB_ENDPOINT_TEXT_MAX 128

/*
 * Encode and decode an endpoint. Format, version 1, big-endian: "VBE" and 1 (4 bytes), mtu as enum
 * ibv_mtu (1), 0 (1), lid (2), qpn (4), psn (4), gid (16). Later versions have at most 40 bytes.
 * Decoding fails with EMSGSIZE (another length), EPROTO (other first bytes), EPROTONOSUPPORT
 * (another version) or EBADMSG (a value out of range).
 */
void vb_endpoint_encode(const struct vb_endpoint *endpoint, uint8_t bytes[VB_ENDPOINT_BYTES]);
int vb_endpoint_decode(const void *bytes, size_t length_bytes, struct vb_endpoint *endpoint);

/*
 * Print and parse an endpoint: "qpn=0x11,lid=0,gid=::ffff:10.0.0.1,psn=0x64,mtu=4096". Printing
 * returns text. Parsing accepts the five parts in any order, each once, with numbers as strtoul(3)
 * reads them; it fails with EINVAL and a sentence that names the wrong part.
 */
const char *vb_endpoint_print(const struct vb_endpoint *endpoint, char text[VB_ENDPOINT_TEXT_MAX]);
int vb_endpoint_parse(const char *text, struct vb_endpoint *endpoint);

/* Returns true if all five parts are equal. */
bool vb_endpoint_equal(const struct vb_endpoint *a, const struct vb_endpoint *b);

/* --- connecting --- */

/* A QP that is not connected yet. */
struct vb_prepared_qp;

/*
 * Creates a QP in state RESET as config (NULL: the defaults) says, and reads the port's present
 * LID, GID and MTU. Ended by vb_handshake() or vb_prepared_drop(). Errors: ERANGE (a setting, which
 * the sentence names), EINVAL (a CQ is missing; the device's limits are exceeded; a UC QP with an
 * SRQ), EOPNOTSUPP (the device does not have QPs of that type), ENETDOWN (the port is neither
 * ACTIVE nor ARMED), ENOMEM, EPERM.
 * Source: man ibv_create_qp(3).
 */
struct vb_prepared_qp *vb_qp_prepare(struct vb_device *device, struct ibv_pd *pd,
				     struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
				     const struct vb_qp_config *config);

/* Destroys the QP. Errors: as ibv_destroy_qp(3). NULL is ignored. */
int vb_prepared_drop(struct vb_prepared_qp *prepared);

/* The endpoint, to be sent to the peer, and the QP. Both belong to the prepared QP. */
const struct vb_endpoint *vb_prepared_endpoint(const struct vb_prepared_qp *prepared);
struct ibv_qp *vb_prepared_qp(const struct vb_prepared_qp *prepared);

/*
 * Connects the QP to the peer's endpoint: takes it from RESET through INIT and RTR to RTS with the
 * smaller of both path MTUs. On success it frees the prepared QP and returns the QP, which the
 * caller ends with vb_destroy_qp(). A UD QP needs no endpoint, so remote may be NULL;
 * vb_endpoint_ah() makes its addresses. On failure the QP is in RESET again and the prepared QP can
 * be used again. Errors: EINVAL (the device refuses an attribute), EBADMSG (the endpoint has values
 * out of range), ENETUNREACH and ETIMEDOUT (the address cannot be resolved). The handshake does not
 * reach the peer: whether the peer is there shows at the first message.
 * Source: man ibv_modify_qp(3).
 */
struct ibv_qp *vb_handshake(struct vb_prepared_qp *prepared, const struct vb_endpoint *remote);

/* Creates an address handle for sends to remote->qpn from a UD QP with this configuration (NULL:
 * the defaults). Ended by vb_destroy_ah(). Errors: as vb_qp_prepare(), and EBADMSG (the endpoint).
 * Source: man ibv_create_ah(3). */
struct ibv_ah *vb_endpoint_ah(struct vb_device *device, struct ibv_pd *pd,
			      const struct vb_qp_config *config, const struct vb_endpoint *remote);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_CONNECT_H */
