/* SPDX-License-Identifier: MIT */
/*
 * The interface of a conformance test: the two nodes, the checks, and cleaning up, which happens
 * however the test ends.
 *
 * A suite is one file. It includes this header and those of test/support, but no header of a
 * backend, and calls vb_* and the inline ibv_*, so it runs on every backend. The smallest suite:
 *
 *	static void empty_poll_answers_none(struct vt *t)
 *	{
 *		struct ibv_cq *cq = VT_PTR(t, vb_create_cq(t->a.ctx, 1, NULL, NULL, 0));
 *		struct ibv_wc wc;
 *
 *		vt_defer(t, destroy_cq, cq);
 *		VT_EQ(t, ibv_poll_cq(cq, 1, &wc), 0);
 *	}
 *
 *	static const struct vt_test tests[] = {
 *		{ "empty_poll_answers_none", "ibv_poll_cq(3)", 0, empty_poll_answers_none },
 *		{ NULL }
 *	};
 *
 *	const struct vt_suite vt_suite_cq = { "cq", "completion queues", tests };
 *
 * The runner opens A and B before each test and closes them after it. Without `--no-fork`
 * each test runs in a child process and, on the simulator, in a world of its own.
 */
#ifndef TEST_CONFORMANCE_CONFORMANCE_H
#define TEST_CONFORMANCE_CONFORMANCE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a test needs. If it is missing, the test is skipped, and the reason says what is missing. */
enum vt_need {
	VT_NEEDS_SIM = 1 << 0,		 /* the calls of verbena/sim.h */
	VT_NEEDS_FAULTS = 1 << 1,	 /* rules that lose, change or delay packets */
	VT_NEEDS_VIRTUAL_CLOCK = 1 << 2, /* time moves only while a test waits */
	VT_NEEDS_TWO_DEVICES = 1 << 3,	 /* A and B are different devices */
	VT_NEEDS_ATOMICS = 1 << 4,	 /* atomic_cap is not IBV_ATOMIC_NONE, on both */
	VT_NEEDS_SRQ = 1 << 5,		 /* max_srq is not 0, on both */
	VT_NEEDS_ETHERNET = 1 << 6,	 /* both ports' link layer */
	VT_NEEDS_INFINIBAND = 1 << 7,
	VT_NEEDS_MTU_1024 = 1 << 8,	 /* both ports' active MTU is 1024 at least */
	VT_NEEDS_GROUPS = 1 << 9,	 /* multicasts of one device reach the other */
	VT_NEEDS_MANAGER = 1 << 10,	 /* one connection manager serves both devices */
	VT_NEEDS_SAME_MANAGER = 1 << 11, /* the connection managers of A and B are of one backend */
};

/*
 * Every test runs under two checkers that are independent of the engine: completion_check.h of
 * test/support and, on the simulator, trace_check.h for the packets on the wire. A test that
 * breaks a rule of the wire on purpose says so in its row.
 */
enum vt_may {
	VT_MAY_CORRUPT = 1 << 0,     /* packets are corrupted on the wire, or made by the test */
	VT_MAY_CHANGE_DATA = 1 << 1, /* a buffer changes before its WR is retransmitted */
	VT_MAY_MISTAKE_PSN = 1 << 2, /* the ends expect different first PSNs */
	VT_MAY_RECONNECT =
		1 << 3, /* a QP is connected twice, which the checker takes for one connection */
	VT_MAY_LOOP = 1 << 4,	    /* a list of WRs is a loop, so it cannot be counted */
	VT_MAY_MISADDRESS = 1 << 5, /* answers go to another QP than the requester */
	VT_MAY_THREAD = 1 << 6, /* threads poll at once, and the checker's lock would stop them */
	VT_MAY_FORK = 1 << 7,	/* the test forks; in two processes its stack is shared memory */
};

/* One end of a connection. */
struct vt_node {
	struct ibv_context *ctx; /* A's and B's differ even on one device; do not close it */
	uint8_t port;
	uint16_t pkey_index; /* of the default P_Key */
	int gid_index;	     /* on Ethernet a RoCE v2 GID, an IPv4 one if there is one */
	union ibv_gid gid;
	struct ibv_port_attr port_attr;
	struct ibv_device_attr device_attr;
};

/* Chooses the P_Key and the GID of a node whose port is known, and reads the GID. */
void vt_node_choose(struct vt_node *node);

struct vt_suite;
struct vt_run; /* result.h */

/* A test that is running. */
struct vt {
	const char *backend; /* "sim", "ibverbs" */
	uint64_t seed;	     /* the seed that reproduces the run with --seed */
	unsigned have;	     /* enum vt_need, of the place where the test runs */
	struct vt_node a, b;
	const struct vt_suite *const *suites; /* all of the program, up to NULL */
	void *support;			      /* test/support's; NULL at the start of each test */
	struct vt_run *run;
};

struct vt_test {
	const char *name;
	const char *source; /* a man page, a kernel file, a quotation, or "unsourced" */
	unsigned needs;	    /* enum vt_need */
	void (*run)(struct vt *t);
	unsigned may; /* enum vt_may; most have none */
};

struct vt_suite {
	const char *name;
	const char *about;
	const struct vt_test *tests; /* up to the test whose name is NULL */
	bool simulator;		     /* for the simulator only: left out on other backends */
	int link_layer; /* that both ports must have, or the suite is left out; 0: any */
};

/* Skips the test if A and B do not have what it needs: enum vt_need. */
void vt_need(struct vt *t, unsigned int needs);

/*
 * Calls fn(arg) when the test ends in any way but a crash; the last deferred call runs first. A
 * check that fails inside fn is recorded and ends fn; the other deferred calls still run.
 */
void vt_defer(struct vt *t, void (*fn)(void *arg), void *arg);

/* Allocates zeroed memory until the test ends. Ends the test if there is no memory. */
void *vt_alloc(struct vt *t, size_t length_bytes);

/*
 * The test's random numbers. They depend only on the seed and the names of the suite and the test.
 */
uint64_t vt_random(struct vt *t);
/* 0 <= result < limit; limit is not 0. */
uint64_t vt_random_below(struct vt *t, uint64_t limit);
void vt_random_fill(struct vt *t, void *buffer, size_t length_bytes);

/*
 * Names the row of a table-driven test, which failures print, until the next call. vt_row(t, NULL)
 * ends it.
 */
void vt_row(struct vt *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds a line that is printed below the failures if the test fails. */
void vt_note(struct vt *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Names for messages; never NULL. The name of errno 0 is "0". */
const char *vt_wc_status_name(int status);
const char *vt_qp_state_name(int state);
const char *vt_event_name(int event);
const char *vt_errno_name(int error);

/*
 * The checks. VT_X ends the test if it fails. VT_EXPECT_X records the failure and continues, so that
 * a table-driven test reports every bad row; it returns true if the check held. Each check evaluates
 * its arguments once.
 *
 *	VT_CHECK(t, cond)
 *	VT_EQ(t, got, want)		integers and enums
 *	VT_EQ_STR(t, got, want)
 *	VT_EQ_MEM(t, got, want, length)	names the first byte that differs
 *	VT_STATUS(t, got, want)		enum ibv_wc_status, by name
 *	VT_STATE(t, got, want)		enum ibv_qp_state, by name
 *	VT_EVENT(t, got, want)		enum ibv_event_type, by name
 *	VT_OK(t, call)			a call that returns 0, an errno, or -1 with errno
 *	VT_ERRNO(t, call, error)	a call that returns an errno
 *	VT_MINUS_ERRNO(t, call, error)	a call that returns -1 with errno
 *	VT_NULL_ERRNO(t, call, error)	a call that returns NULL with errno
 *	ptr = VT_PTR(t, call)		a call that returns an object; ends the test if NULL
 *	VT_SKIP(t, fmt, ...)		ends the test as skipped, with its reason
 *	VT_FAIL(t, fmt, ...)		ends the test as failed
 */
struct vt_at {
	const char *file;
	int line;
	bool ends; /* a failure ends the test */
};

enum vt_kind { VT_KIND_INTEGER, VT_KIND_STATUS, VT_KIND_STATE, VT_KIND_EVENT, VT_KIND_ERRNO };

bool vt_check(struct vt *t, struct vt_at at, const char *expr, bool holds);
bool vt_eq(struct vt *t, struct vt_at at, enum vt_kind kind, const char *expr, long long got,
	   long long want);
bool vt_eq_str(struct vt *t, struct vt_at at, const char *expr, const char *got, const char *want);
bool vt_eq_mem(struct vt *t, struct vt_at at, const char *expr, const void *got, const void *want,
	       size_t length_bytes);
/* error is the errno that the call left; errno was 0 before. */
bool vt_ok(struct vt *t, struct vt_at at, const char *expr, int got, int error);
bool vt_minus_errno(struct vt *t, struct vt_at at, const char *expr, int got, int error, int want);
bool vt_null_errno(struct vt *t, struct vt_at at, const char *expr, const void *got, int error,
		   int want);
void vt_no_object(struct vt *t, struct vt_at at, const char *expr, int error)
	__attribute__((noreturn));
void vt_fail(struct vt *t, struct vt_at at, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void vt_skip(struct vt *t, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* Where a check stands. */
#define VT_HERE	      ((struct vt_at){__FILE__, __LINE__, true})
#define VT_HERE_GO_ON ((struct vt_at){__FILE__, __LINE__, false})

/*
 * text is the expression as the test wrote it: #got here would print it with its macros expanded.
 */
#define VT_EQ_SAID(t, at, kind, text, got, want) \
	vt_eq(t, at, kind, text, (long long)(got), (long long)(want))
#define VT_OK_SAID(t, at, text, call)               \
	({                                          \
		errno = 0;                          \
		int vt_got_ = (call);               \
		vt_ok(t, at, text, vt_got_, errno); \
	})
#define VT_MINUS_ERRNO_SAID(t, at, text, call, want)               \
	({                                                         \
		errno = 0;                                         \
		int vt_got_ = (call);                              \
		vt_minus_errno(t, at, text, vt_got_, errno, want); \
	})
#define VT_NULL_ERRNO_SAID(t, at, text, call, want)               \
	({                                                        \
		errno = 0;                                        \
		const void *vt_got_ = (call);                     \
		vt_null_errno(t, at, text, vt_got_, errno, want); \
	})

#define VT_CHECK(t, cond)	       ((void)vt_check(t, VT_HERE, #cond, (cond)))
#define VT_EQ(t, got, want)	       ((void)VT_EQ_SAID(t, VT_HERE, VT_KIND_INTEGER, #got, got, want))
#define VT_STATUS(t, got, want)	       ((void)VT_EQ_SAID(t, VT_HERE, VT_KIND_STATUS, #got, got, want))
#define VT_STATE(t, got, want)	       ((void)VT_EQ_SAID(t, VT_HERE, VT_KIND_STATE, #got, got, want))
#define VT_EVENT(t, got, want)	       ((void)VT_EQ_SAID(t, VT_HERE, VT_KIND_EVENT, #got, got, want))
#define VT_ERRNO(t, call, error)       ((void)VT_EQ_SAID(t, VT_HERE, VT_KIND_ERRNO, #call, call, error))
#define VT_EQ_STR(t, got, want)	       ((void)vt_eq_str(t, VT_HERE, #got, got, want))
#define VT_EQ_MEM(t, got, want, bytes) ((void)vt_eq_mem(t, VT_HERE, #got, got, want, bytes))
#define VT_OK(t, call)		       ((void)VT_OK_SAID(t, VT_HERE, #call, call))
#define VT_MINUS_ERRNO(t, call, error) ((void)VT_MINUS_ERRNO_SAID(t, VT_HERE, #call, call, error))
#define VT_NULL_ERRNO(t, call, error)  ((void)VT_NULL_ERRNO_SAID(t, VT_HERE, #call, call, error))

/* clang-format off */
#define VT_EXPECT(t, cond) vt_check(t, VT_HERE_GO_ON, #cond, (cond))
#define VT_EXPECT_EQ(t, got, want) VT_EQ_SAID(t, VT_HERE_GO_ON, VT_KIND_INTEGER, #got, got, want)
#define VT_EXPECT_STATUS(t, got, want) VT_EQ_SAID(t, VT_HERE_GO_ON, VT_KIND_STATUS, #got, got, want)
#define VT_EXPECT_STATE(t, got, want) VT_EQ_SAID(t, VT_HERE_GO_ON, VT_KIND_STATE, #got, got, want)
#define VT_EXPECT_EVENT(t, got, want) VT_EQ_SAID(t, VT_HERE_GO_ON, VT_KIND_EVENT, #got, got, want)
#define VT_EXPECT_ERRNO(t, call, error) \
	VT_EQ_SAID(t, VT_HERE_GO_ON, VT_KIND_ERRNO, #call, call, error)
#define VT_EXPECT_EQ_STR(t, got, want) vt_eq_str(t, VT_HERE_GO_ON, #got, got, want)
#define VT_EXPECT_EQ_MEM(t, got, want, bytes) vt_eq_mem(t, VT_HERE_GO_ON, #got, got, want, bytes)
#define VT_EXPECT_OK(t, call) VT_OK_SAID(t, VT_HERE_GO_ON, #call, call)
#define VT_EXPECT_MINUS_ERRNO(t, call, error) \
	VT_MINUS_ERRNO_SAID(t, VT_HERE_GO_ON, #call, call, error)
#define VT_EXPECT_NULL_ERRNO(t, call, error) \
	VT_NULL_ERRNO_SAID(t, VT_HERE_GO_ON, #call, call, error)
/* clang-format on */

/* For helpers whose failures name the line of their caller: at is VT_HERE of the caller. */
#define VT_EQ_AT(t, at, kind, got, want) VT_EQ_SAID(t, at, kind, #got, got, want)
#define VT_OK_AT(t, at, call)		 VT_OK_SAID(t, at, #call, call)

#define VT_PTR(t, call)                                         \
	({                                                      \
		errno = 0;                                      \
		__typeof__(call) vt_got_ = (call);              \
		if (!vt_got_)                                   \
			vt_no_object(t, VT_HERE, #call, errno); \
		vt_got_;                                        \
	})

#define VT_SKIP(t, ...) vt_skip(t, __VA_ARGS__)
#define VT_FAIL(t, ...) vt_fail(t, VT_HERE, __VA_ARGS__)

#endif
