/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eq.c - event queues: what the program writes, and insertions into address vectors
 */
#include "prov.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct ofi_eq_entry {
	uint32_t event;
	size_t len;
	STAILQ_ENTRY(ofi_eq_entry) next;
	char bytes[];
};

/* Make the descriptor readable, or not; the lock is held. */
static void eq_show(struct ofi_eq *eq, bool on)
{
	eventfd_t value;
	if (eq->fd >= 0)
		(void)(on ? eventfd_write(eq->fd, 1) : eventfd_read(eq->fd, &value));
}

static int eq_put(struct ofi_eq *eq, uint32_t event, const void *buf, size_t len)
{
	if (ofi_node.forked) /* the descriptor is that of its parent */
		return -FI_EOPBADSTATE;
	struct ofi_eq_entry *entry = malloc(sizeof *entry + len);
	if (!entry)
		return -FI_ENOMEM;
	entry->event = event;
	entry->len = len;
	memcpy(entry->bytes, buf, len);
	pthread_mutex_lock(&eq->lock);
	if (STAILQ_EMPTY(&eq->entries))
		eq_show(eq, true);
	STAILQ_INSERT_TAIL(&eq->entries, entry, next);
	pthread_cond_broadcast(&eq->news); /* one that peeks leaves it to others */
	pthread_mutex_unlock(&eq->lock);
	return 0;
}

int ofi_eq_av(struct ofi_eq *eq, struct fid *fid, void *context, uint64_t count)
{
	struct fi_eq_entry entry = {.fid = fid, .context = context, .data = count};
	return eq_put(eq, FI_AV_COMPLETE, &entry, sizeof entry);
}

int ofi_eq_bind(struct ofi_eq **eq, struct fid *fid, uint64_t bad_flags)
{
	if (!fid || fid->fclass != FI_CLASS_EQ || *eq)
		return -FI_EINVAL;
	if (bad_flags)
		return -FI_EBADFLAGS;
	*eq = container_of(fid, struct ofi_eq, fid.fid);
	ofi_hold(&(*eq)->refs);
	return 0;
}

static ssize_t eq_write(
	struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	if (!buf && len)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	if (!eq->may_write)
		return -FI_EINVAL;
	int rc = eq_put(eq, event, buf, len);
	return rc ? rc : (ssize_t)len;
}

/* Take the first entry, with the lock held. */
static ssize_t eq_take(
	struct ofi_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct ofi_eq_entry *entry = STAILQ_FIRST(&eq->entries);
	if (!entry)
		return -FI_EAGAIN;
	if (len < entry->len)
		return -FI_ETOOSMALL;
	*event = entry->event;
	memcpy(buf, entry->bytes, entry->len);
	ssize_t got = (ssize_t)entry->len;
	if (!(flags & FI_PEEK)) {
		STAILQ_REMOVE_HEAD(&eq->entries, next);
		free(entry);
		if (STAILQ_EMPTY(&eq->entries))
			eq_show(eq, false);
	}
	return got;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
	int timeout, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	struct timespec end;
	ssize_t rc;
	int late = 0;
	if (!event || (!buf && len))
		return -FI_EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	if (ofi_node.forked)
		return -FI_EOPBADSTATE;
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (timeout > 0) {
		end.tv_nsec += timeout % 1000 * 1000000L;
		end.tv_sec += timeout / 1000 + end.tv_nsec / 1000000000L;
		end.tv_nsec %= 1000000000L;
	}
	pthread_mutex_lock(&eq->lock);
	eq->readers++;
	while ((rc = eq_take(eq, event, buf, len, flags)) == -FI_EAGAIN && timeout &&
		late != ETIMEDOUT)
		late = timeout < 0 ? pthread_cond_wait(&eq->news, &eq->lock)
				   : pthread_cond_timedwait(&eq->news, &eq->lock, &end);
	eq->readers--;
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static ssize_t eq_read(
	struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	return eq_sread(fid, event, buf, len, 0, flags);
}

/* No operation of the provider fails behind the back of its caller. */
static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	(void)fid;
	if (!buf)
		return -FI_EINVAL;
	return flags & ~FI_PEEK ? -FI_EBADFLAGS : -FI_EAGAIN;
}

static const char *eq_strerror(
	struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid;
	(void)err_data;
	const char *text = fi_strerror(prov_errno);
	if (!buf || !len)
		return text;
	snprintf(buf, len, "%s", text);
	return buf;
}

int ofi_eq_trywait(struct ofi_eq *eq)
{
	if (eq->fd < 0)
		return -FI_EINVAL;
	if (ofi_node.forked)
		return -FI_EOPBADSTATE;
	pthread_mutex_lock(&eq->lock);
	int rc = STAILQ_EMPTY(&eq->entries) ? 0 : -FI_EAGAIN;
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid.fid);
	return ofi_wait_control(eq->wait, eq->fd, command, arg);
}

static int eq_close(struct fid *fid)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid.fid);
	struct ofi_eq_entry *entry;
	if (ofi_node.forked)
		return -FI_EOPBADSTATE;
	pthread_mutex_lock(&eq->lock);
	bool read = eq->readers != 0;
	pthread_mutex_unlock(&eq->lock);
	if (read || ofi_is_held(&eq->refs))
		return -FI_EBUSY;
	while ((entry = STAILQ_FIRST(&eq->entries))) {
		STAILQ_REMOVE_HEAD(&eq->entries, next);
		free(entry);
	}
	if (eq->fd >= 0)
		close(eq->fd);
	ofi_let_go(&eq->fabric->refs);
	pthread_cond_destroy(&eq->news);
	pthread_mutex_destroy(&eq->lock);
	free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = OFI_FID_OPS(eq_close, ofi_no_bind, eq_control);
static struct fi_ops_eq eq_ops = {
	.size = sizeof eq_ops,
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
	void *context)
{
	pthread_condattr_t clock;
	if (!attr || !eq)
		return -FI_EINVAL;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EBADFLAGS;
	if (!ofi_wait_is_known(attr->wait_obj, true))
		return -FI_ENOSYS;
	struct ofi_eq *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	made->wait = attr->wait_obj;
	made->fd = -1;
	if (made->wait == FI_WAIT_FD) {
		made->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (made->fd < 0) {
			int rc = -errno;
			free(made);
			return rc;
		}
	}
	made->fid.fid = (struct fid){FI_CLASS_EQ, context, &eq_fid_ops};
	made->fid.ops = &eq_ops;
	made->fabric = container_of(fabric, struct ofi_fabric, fid);
	made->may_write = attr->flags & FI_WRITE;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->news, &clock);
	pthread_condattr_destroy(&clock);
	STAILQ_INIT(&made->entries);
	ofi_hold(&made->fabric->refs);
	*eq = &made->fid;
	return 0;
}
