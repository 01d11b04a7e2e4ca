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

static struct domain *new_domain(struct device *device, const struct stat *inode)
{
	struct domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return NULL;
	if (sim_xrcd_create(device->engine, &domain->engine)) {
		free(domain);
		return NULL;
	}
	if (inode) {
		domain->has_inode = true;
		domain->st_dev = inode->st_dev;
		domain->st_ino = inode->st_ino;
	}
	domain->next = device->domains;
	device->domains = domain;
	return domain;
}

static void release_domain(struct device *device, struct domain *domain)
{
	struct domain **at = &device->domains;

	if (--domain->handles)
		return;
	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	sim_xrcd_destroy(domain->engine);
	free(domain);
}

/*
 * Sets *domain to the inode's domain, or to NULL if a new one has to be made. The errors are those
 * of Linux drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_open_xrcd: EBADF, EAGAIN without
 * O_CREAT, EINVAL for O_EXCL.
 */
static int look_up(const struct context *context, const struct ibv_xrcd_init_attr *attr,
		   struct stat *inode, struct domain **domain)
{
	*domain = NULL;
	if (attr->fd == -1)
		return 0;
	if (fstat(attr->fd, inode))
		return say(EBADF, "open_xrcd: there is no descriptor %d", attr->fd);
	*domain = find_domain(context->device, inode);
	if (!*domain && !(attr->oflags & O_CREAT))
		return say(EAGAIN, "open_xrcd: the inode has no domain; set O_CREAT to make one");
	if (*domain && attr->oflags & O_EXCL)
		return say(EINVAL, "open_xrcd: the inode has a domain, and O_EXCL is set");
	return 0;
}

static struct xrcd *new_xrcd(struct context *context, const struct ibv_xrcd_init_attr *attr)
{
	struct domain *domain;
	struct xrcd *xrcd;
	struct stat inode;
	int err = look_up(context, attr, &inode, &domain);

	if (err)
		return null_errno(err);
	xrcd = object_new(context, KIND_XRCD, "open_xrcd");
	if (!xrcd)
		return NULL;
	if (!domain)
		domain = new_domain(context->device, attr->fd == -1 ? NULL : &inode);
	if (!domain) {
		object_end(KIND_XRCD, xrcd);
		return say_null(ENOMEM, "open_xrcd: out of memory");
	}
	xrcd->domain = domain;
	domain->handles++;
	return xrcd;
}

struct ibv_xrcd *verb_open_xrcd(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct xrcd *xrcd;

	if (!context_live(context) || attr->comp_mask != needed ||
	    attr->oflags & ~(O_CREAT | O_EXCL))
		return say_null(
			EINVAL,
			"open_xrcd: the context is closed, or wrong comp_mask 0x%x or oflags 0%o",
			attr->comp_mask, (unsigned int)attr->oflags);
	if (!(context->device->engine->profile->limits.device_cap_flags & IBV_DEVICE_XRC))
		return say_null(EOPNOTSUPP, "open_xrcd: %s does not support XRC",
				context->device->ibv.name);
	xrcd = new_xrcd(context, attr);
	return xrcd ? &xrcd->ibv : NULL;
}

void verb_end_xrcd(void *object)
{
	struct xrcd *xrcd = object;

	release_domain(object_context(xrcd)->device, xrcd->domain);
	object_end(KIND_XRCD, xrcd);
}

int verb_close_xrcd(struct ibv_xrcd *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct xrcd *xrcd = xrcd_of(ibv);

	if (!xrcd)
		return say(ENOENT, "close_xrcd: no such XRC domain");
	if (xrcd->users)
		return say(EBUSY, "close_xrcd: %u SRQs and QPs use it; destroy them first",
			   xrcd->users);
	verb_end_xrcd(xrcd);
	return 0;
}
