/* SPDX-License-Identifier: MIT */
/* XRC domains, and the handles of a shared target QP. */
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* --- domains --- */

static struct domain *find_domain(const struct context *context, const struct stat *inode)
{
	const struct sim_device *device = context->device->engine;
	struct domain *domain = context->world->domains;

	while (domain && !(domain->has_inode && domain->device == device &&
			   domain->st_dev == inode->st_dev && domain->st_ino == inode->st_ino))
		domain = domain->next;
	return domain;
}

static struct domain *new_domain(struct context *context, const struct stat *inode)
{
	struct domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return NULL;
	domain->device = context->device->engine;
	if (sim_xrcd_create(domain->device, &domain->engine)) {
		free(domain);
		return NULL;
	}
	if (inode) {
		domain->has_inode = true;
		domain->st_dev = inode->st_dev;
		domain->st_ino = inode->st_ino;
	}
	domain->next = context->world->domains;
	context->world->domains = domain;
	return domain;
}

static void release_domain(struct vb_sim *world, struct domain *domain)
{
	struct domain **at = &world->domains;

	if (--domain->handles)
		return;
	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	sim_xrcd_destroy(domain->engine);
	free(domain);
}

/*
 * The domain that is there, or is to be made (NULL). The errors are those of Linux
 * drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_open_xrcd: EBADF, EAGAIN without O_CREAT, EINVAL
 * for O_EXCL.
 */
static int look_up(const struct context *context, const struct ibv_xrcd_init_attr *attr,
		   struct stat *inode, struct domain **domain)
{
	*domain = NULL;
	if (attr->fd == -1)
		return 0;
	if (fstat(attr->fd, inode))
		return say(EBADF, "open_xrcd: no descriptor %d", attr->fd);
	*domain = find_domain(context, inode);
	if (!*domain && !(attr->oflags & O_CREAT))
		return say(EAGAIN, "open_xrcd: no domain of that inode, and no O_CREAT");
	if (*domain && attr->oflags & O_EXCL)
		return say(EINVAL, "open_xrcd: O_EXCL, and the inode has a domain");
	return 0;
}

static int new_xrcd(struct context *context, const struct ibv_xrcd_init_attr *attr,
		    struct xrcd **out)
{
	struct domain *domain;
	struct xrcd *xrcd;
	struct stat inode;
	uint32_t handle;
	int err = look_up(context, attr, &inode, &domain);

	if (err)
		return err;
	xrcd = object_new(context, KIND_XRCD, &handle);
	if (xrcd && !domain) {
		domain = new_domain(context, attr->fd == -1 ? NULL : &inode);
		if (!domain)
			object_end(context, KIND_XRCD, handle, xrcd);
	}
	if (!xrcd || !domain)
		return say(ENOMEM, "open_xrcd: out of memory");
	xrcd->ibv.context = &context->verbs.context;
	xrcd->handle = handle;
	xrcd->domain = domain;
	domain->handles++;
	*out = xrcd;
	return 0;
}

struct ibv_xrcd *control_open_xrcd(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct xrcd *xrcd = NULL;
	int err;

	if (!context_live(context) || attr->comp_mask != needed ||
	    attr->oflags & ~(O_CREAT | O_EXCL))
		err = say(EINVAL, "open_xrcd: comp_mask 0x%x, oflags 0%o", attr->comp_mask,
			  (unsigned int)attr->oflags);
	else if (!(context->device->engine->profile->limits.device_cap_flags & IBV_DEVICE_XRC))
		err = say(EOPNOTSUPP, "open_xrcd: %s has no XRC", context->device->ibv.name);
	else
		err = new_xrcd(context, attr, &xrcd);
	world_unlock(context->world, locked);
	if (err)
		errno = err;
	return err ? NULL : &xrcd->ibv;
}

void control_end_xrcd(struct context *context, struct xrcd *xrcd)
{
	release_domain(context->world, xrcd->domain);
	object_end(context, KIND_XRCD, xrcd->handle, xrcd);
}

int control_close_xrcd(struct ibv_xrcd *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct xrcd *xrcd = xrcd_of(ibv);
	int err = 0;

	if (!xrcd)
		err = say(EINVAL, "close_xrcd: no such XRC domain");
	else if (xrcd->users)
		err = say(EBUSY, "close_xrcd: %u SRQs and QPs are in it", xrcd->users);
	else
		control_end_xrcd(context, xrcd);
	world_unlock(context->world, locked);
	return err;
}

/* --- target QPs --- */

/* A handle of the target QP; any will do. NULL where there is none in the domain. */
static struct qp *find_target(struct context *context, const struct domain *domain, uint32_t number)
{
	struct sim_qp *engine = sim_table_find(&context->device->engine->qps, number);
	struct qp *qp = engine ? sim_qp_user(engine) : NULL;

	return qp && qp->xrcd && qp->xrcd->domain == domain ? qp : NULL;
}

static struct qp *new_handle(struct context *context, const struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct xrcd *xrcd = NULL;
	struct qp *target, *qp;
	uint32_t handle;

	if ((attr->comp_mask & needed) != needed ||
	    attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT))
		return say_null(EINVAL, "open_qp: comp_mask 0x%x", attr->comp_mask);
	if (attr->xrcd && attr->xrcd->context == &context->verbs.context)
		xrcd = xrcd_of(attr->xrcd);
	if (!xrcd)
		return say_null(EINVAL, "open_qp: no such XRC domain in this context");
	target = find_target(context, xrcd->domain, attr->qp_num);
	if (!target || attr->qp_type != IBV_QPT_XRC_RECV)
		return say_null(EINVAL, "open_qp: no QP 0x%x of type %d in the domain",
				attr->qp_num, (int)attr->qp_type);
	qp = object_new(context, KIND_QP, &handle);
	if (!qp)
		return say_null(ENOMEM, "open_qp: out of memory");
	qp->engine = target->engine;
	control_fill_qp(qp, &context->verbs.context,
			attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL,
			IBV_QPT_XRC_RECV, handle);
	qp->ibv.state = sim_qp_state(qp->engine);
	qp->xrcd = xrcd;
	xrcd->users++;
	qp->next_handle = target->next_handle;
	target->next_handle = qp;
	return qp;
}

struct ibv_qp *control_open_qp(struct ibv_context *ibv, struct ibv_qp_open_attr *attr)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct qp *qp = new_handle(context, attr);

	world_unlock(context->world, locked);
	return qp ? &qp->ibv : NULL;
}

bool control_leave_ring(struct qp *qp)
{
	struct qp *before = qp;

	if (qp->next_handle == qp)
		return true;
	while (before->next_handle != qp)
		before = before->next_handle;
	before->next_handle = qp->next_handle;
	sim_qp_set_user(qp->engine, before);
	return false;
}
