/* SPDX-License-Identifier: MIT */
/* XRC domains. */
#include "backends/sim/verb/verbs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct domain *find_domain(const struct device *device, const struct stat *inode)
{
	struct domain *domain = device->domains;

	while (domain && !(domain->has_inode && domain->st_dev == inode->st_dev &&
			   domain->st_ino == inode->st_ino))
		domain = domain->next;
	return domain;
}

#define OPEN "open_xrcd"

static int refuse_inode(enum vb_reason reason, int fd)
{
	return refuse_why(OPEN, (struct vb_why){reason, {(uint64_t)fd}});
}

/* Opens the inode's domain for this process. The errors are those of Linux
 * drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_open_xrcd: EAGAIN without O_CREAT, EINVAL for O_EXCL. */
static int open_inode(struct domain *domain, const struct device *device,
		      const struct ibv_xrcd_init_attr *attr, const struct stat *inode)
{
	switch (world_open_domain(device, inode, attr->oflags, &domain->entry)) {
	case 0:
		break;
	case EAGAIN:
		return refuse_inode(VB_WHY_XRCD_ABSENT, attr->fd);
	case EEXIST:
		return refuse_inode(VB_WHY_XRCD_EXISTS, attr->fd);
	default:
		return refuse_plainly(OPEN, VB_WHY_XRCD_FULL);
	}
	domain->has_inode = true;
	domain->st_dev = inode->st_dev;
	domain->st_ino = inode->st_ino;
	return 0;
}

/* Returns NULL with errno and a sentence. inode NULL: the domain has none. */
static struct domain *new_domain(struct device *device, const struct ibv_xrcd_init_attr *attr,
				 const struct stat *inode)
{
	struct domain *domain = calloc(1, sizeof(*domain));
	int err = inode && domain ? open_inode(domain, device, attr, inode) : 0;

	if (!domain || err) {
		free(domain);
		return null_errno(err ? err : refuse_plainly(OPEN, VB_WHY_NO_MEMORY));
	}
	if (sim_xrcd_create(device->engine, &domain->engine)) {
		if (inode)
			world_close_domain(device, domain->entry);
		free(domain);
		return null_errno(refuse_plainly(OPEN, VB_WHY_NO_MEMORY));
	}
	if (inode && world_shares(device->world, device)) {
		domain->engine->shared = true;
		domain->engine->key[0] = inode->st_dev;
		domain->engine->key[1] = inode->st_ino;
	}
	domain->next = device->domains;
	device->domains = domain;
	return domain;
}

void verb_release_domain(struct device *device, struct domain *domain)
{
	struct domain **at = &device->domains;

	if (--domain->handles)
		return;
	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	sim_xrcd_destroy(domain->engine);
	if (domain->has_inode)
		world_close_domain(device, domain->entry);
	free(domain);
}

/* Sets *domain to the inode's domain, or to NULL if this process has not opened it. */
static int look_up(const struct context *context, const struct ibv_xrcd_init_attr *attr,
		   struct stat *inode, struct domain **domain)
{
	*domain = NULL;
	if (attr->fd == -1)
		return 0;
	if (fstat(attr->fd, inode))
		return refuse_inode(VB_WHY_XRCD_DESCRIPTOR, attr->fd);
	*domain = find_domain(context->device, inode);
	if (*domain && attr->oflags & O_EXCL)
		return refuse_inode(VB_WHY_XRCD_EXISTS, attr->fd);
	return 0;
}

static struct xrcd *new_xrcd(struct context *context, const struct ibv_xrcd_init_attr *attr)
{
	struct domain *domain;
	struct xrcd *xrcd;
	struct stat inode;
	int err = world_resume_wires(context->world);

	if (!err)
		err = look_up(context, attr, &inode, &domain);
	if (err)
		return null_errno(err);
	xrcd = object_new(context, KIND_XRCD, OPEN);
	if (!xrcd)
		return NULL;
	if (!domain)
		domain = new_domain(context->device, attr, attr->fd == -1 ? NULL : &inode);
	if (!domain) {
		err = errno;
		object_end(KIND_XRCD, xrcd);
		return null_errno(err);
	}
	xrcd->domain = domain;
	domain->handles++;
	return xrcd;
}

static int check_attr(const struct context *context, const struct ibv_xrcd_init_attr *attr)
{
	const unsigned int cap = context->device->engine->profile->limits.device_cap_flags;
	const int unknown = attr->oflags & ~(O_CREAT | O_EXCL);

	if (!context_live(context))
		return refuse_plainly(OPEN, VB_WHY_CONTEXT_CLOSED);
	if (attr->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS))
		return refuse_why(OPEN, (struct vb_why){VB_WHY_XRCD_COMP_MASK, {attr->comp_mask}});
	if (unknown)
		return refuse_why(OPEN,
				  (struct vb_why){VB_WHY_XRCD_OFLAGS, {(unsigned int)unknown}});
	if (!(cap & IBV_DEVICE_XRC))
		return refuse_why(OPEN, (struct vb_why){VB_WHY_XRCD_LACKING, {IBV_DEVICE_XRC}});
	return 0;
}

struct ibv_xrcd *verb_open_xrcd(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	int err = check_attr(context, attr);
	struct xrcd *xrcd;

	if (err)
		return null_errno(err);
	xrcd = new_xrcd(context, attr);
	return xrcd ? &xrcd->ibv : NULL;
}

void verb_end_xrcd(void *object)
{
	struct xrcd *xrcd = object;

	verb_release_domain(object_context(xrcd)->device, xrcd->domain);
	object_end(KIND_XRCD, xrcd);
}

int verb_close_xrcd(struct ibv_xrcd *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct xrcd *xrcd = xrcd_of(ibv);

	if (!xrcd)
		return refuse_gone("close_xrcd", KIND_XRCD, ibv);
	if (xrcd->users)
		return refuse_busy("close_xrcd", VB_WHY_XRCD_BUSY, 0, KIND_XRCD, xrcd);
	verb_end_xrcd(xrcd);
	return 0;
}
