/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of a node, and network interfaces: PtlNIInit, PtlNIFini, limits, ids. */
#include "lib/init.h"
#include "lib/domain/mesh.h"
#include "lib/job/job.h"
#include "lib/node/call.h"
#include "shm/fault.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the users of a node ---- */

void (*p3_users_at_quick_exit)(void);

int p3_users_enter(struct p3_node *node)
{
	static bool quick_exit_watched;
	if (node->users) {
		node->users++;
		return 0;
	}
	p3_conf_log();
	if (!node->harness)
		p3_conf_set_stdout();
	p3_conf_join_fences(); /* before p3_job_begin starts another thread */
	int rc = p3_job_begin(node);
	if (rc)
		return rc;
	if (node->modex && p3_users_at_quick_exit && !quick_exit_watched)
		quick_exit_watched = !at_quick_exit(p3_users_at_quick_exit);
	if (node->sock < 0 && !node->rank) /* yod warns for its nodes */
		p3_conf_warn_unknown();
	node->users = 1;
	return 0;
}

void p3_users_leave(struct p3_node *node)
{
	if (!--node->users)
		p3_job_end(node);
}

bool p3_users_need_nic(struct p3_node *node)
{
	return p3_get(&node->ni[0].open) || p3_get(&node->ni[1].open) || node->cci_uses;
}

void p3_users_stop_nic(struct p3_node *node)
{
	struct p3_nic *nic = p3_nic(node);
	FAULT_POINT("fini.begun");
	p3_job_leave(node);
	p3_node_show_nic(node, NULL);
	p3_node_set_nic(node, NULL);
	p3_nic_stop(nic);
	p3_job_exit(node);
}

/* ---- limits ---- */

#define P3_PID_MOST 65534u /* pids travel in 16 bits */

static int limit_fit(int desired, int least, int most, int usual)
{
	if (desired <= 0)
		return usual;
	return desired < least ? least : desired > most ? most : desired;
}

static ptl_ni_limits_t limits_agree(const ptl_ni_limits_t *desired)
{
	static const ptl_ni_limits_t none;
	const ptl_ni_limits_t *d = desired ? desired : &none;
	ptl_ni_limits_t l = {
		.max_mes = limit_fit(d->max_mes, 1, 1 << 17, 1 << 16),
		.max_mds = limit_fit(d->max_mds, 1, 1 << 17, 1 << 16),
		.max_eqs = limit_fit(d->max_eqs, 1, 1 << 12, 1 << 8),
		.max_ac_index = limit_fit(d->max_ac_index, 1, 1023, 63),
		.max_pt_index = limit_fit(d->max_pt_index, 63, 1023, 63),
		.max_md_iovecs = limit_fit(d->max_md_iovecs, 16, 1 << 16, 1 << 10),
		.max_me_list = limit_fit(d->max_me_list, 1, 1 << 17, 1 << 16),
		/* An exchange travels in one message, also in a base lane. */
		.max_getput_md = limit_fit(d->max_getput_md, 8, 64, 64),
	};
	return l;
}

/* ---- start of the NIC with the first interface ---- */

static int ni_open(struct p3_node *node, struct p3_nic *nic, uint32_t i, uint32_t pid,
	const ptl_ni_limits_t *desired)
{
	struct p3_lib_ni *ni = &node->ni[i];
	ptl_ni_limits_t limits = limits_agree(desired);
	uint64_t handle;
	ni->cray = node->personality == P3_PERSONALITY_CRAY ||
		   (node->personality == P3_PERSONALITY_AUTO && i == 1);
	int rc = p3_nic_ni_open(nic, i, pid, ni->cray, &limits, &handle);
	if (rc == PTL_NO_SPACE)
		p3_error("no memory for the tables of an interface with %d match entries",
			limits.max_mes);
	if (rc != PTL_OK)
		return rc;
	ni->limits = limits;
	p3_set(&ni->pid, pid);
	p3_set(&ni->handle, handle);
	p3_release(&ni->open, 1); /* INIT.1 */
	return PTL_OK;
}

/* Start the NIC, open the first interface, and announce both to the job.  The caller
 * holds the lock node->life. */
static int ni_open_first(
	struct p3_node *node, uint32_t i, uint32_t pid, const ptl_ni_limits_t *desired)
{
	struct p3_nic *nic;
	int started = p3_job_start_nic(node, &nic);
	if (started)
		return started == -ENODEV ? PTL_IFACE_INVALID : PTL_NO_SPACE;
	p3_node_set_nic(node, nic);
	p3_node_show_nic(node, nic);
	int rc = ni_open(node, nic, i, pid, desired);
	p3_named_list(node, nic);
	int joined = rc == PTL_OK ? p3_job_join(node, nic) : 0;
	if (joined)
		rc = p3_job_passes(joined) ? PTL_NO_SPACE : PTL_IFACE_INVALID;
	if (rc != PTL_OK) {
		p3_set(&node->ni[i].open, 0);
		p3_users_stop_nic(node);
	}
	return rc;
}

/* Open an interface of a NIC that runs, for the other interface or for CCI.  The caller
 * holds the lock node->life. */
static int ni_open_another(
	struct p3_node *node, uint32_t i, uint32_t pid, const ptl_ni_limits_t *desired)
{
	struct p3_nic *nic = p3_nic(node);
	int rc = ni_open(node, nic, i, pid, desired);
	if (rc != PTL_OK)
		return rc;
	if (!p3_nic_ready(node)) {
		p3_named_list(node, nic);
		p3_node_show_nic(node, nic);
	}
	p3_job_pids(node);
	return PTL_OK;
}

static bool ni_has_pid(const struct p3_lib_ni *ni, ptl_pid_t pid)
{
	return p3_get(&ni->open) && p3_get(&ni->pid) == pid;
}

/* For PTL_PID_ANY take the pid of the own rank in the program's maps, as peers expect,
 * unless the other interface has it; else the launcher's, or the first free one. */
static int ni_pick_pid(struct p3_node *node, uint32_t i, ptl_pid_t *pid)
{
	const struct p3_lib_ni *other = &node->ni[1 - i];
	ptl_pid_t base = P3_JOB_PID_BASE + node->rank + i * P3_JOB_PID_STEP;
	if (*pid == PTL_PID_ANY) {
		*pid = p3_named_pid(node, i);
		if (ni_has_pid(other, *pid))
			*pid = PTL_PID_ANY;
	}
	if (*pid == PTL_PID_ANY && !node->mesh)
		*pid = base;
	if ((*pid != PTL_PID_ANY && *pid > P3_PID_MOST) || ni_has_pid(other, *pid))
		return PTL_PID_INVALID;
	return node->mesh ? p3_mesh_claim(node, base, pid) : PTL_OK;
}

/* Initialize an interface.  The caller holds the lock node->life. */
static int ni_init(
	struct p3_node *node, uint32_t i, ptl_pid_t pid, const ptl_ni_limits_t *desired)
{
	bool first = !p3_nic(node);
	struct p3_conf conf;
	if (p3_get(&node->ni[i].open))
		return node->ni[i].cray ? PTL_IFACE_DUP : PTL_OK;
	if (first && p3_conf_read(&conf))
		return PTL_FAIL;
	int rc = first ? p3_job_enter(node) : 0;
	if (rc == -EADDRINUSE)
		return PTL_PID_INVALID;
	if (rc)
		return rc == -EINVAL || p3_job_passes(rc) ? PTL_NO_SPACE
							  : PTL_IFACE_INVALID;
	rc = ni_pick_pid(node, i, &pid);
	if (rc == PTL_OK)
		rc = first ? ni_open_first(node, i, pid, desired)
			   : ni_open_another(node, i, pid, desired);
	if (!p3_nic(node))
		p3_job_exit(node);
	return rc;
}

int PtlNIInit(ptl_interface_t iface, ptl_pid_t pid, ptl_ni_limits_t *desired,
	ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle)
{
	struct p3_node *node = p3_node();
	if (!ni_handle)
		return PTL_SEGV;
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (iface != PTL_IFACE_DEFAULT && iface != PTL_IFACE_SS)
		return PTL_IFACE_INVALID;
	if (p3_is_busy())
		return PTL_NO_SPACE;
	uint32_t i = iface == PTL_IFACE_SS;
	struct p3_caller caller = p3_caller_save();
	pthread_mutex_lock(&node->call);
	pthread_mutex_lock(&node->life);
	int rc = PTL_NO_INIT; /* another thread may have called PtlFini */
	if (p3_is_up(node))
		rc = ni_init(node, i, pid, desired);
	pthread_mutex_unlock(&node->life);
	if (rc == PTL_OK || rc == PTL_IFACE_DUP) {
		*ni_handle = p3_get(&node->ni[i].handle);
		if (actual)
			*actual = node->ni[i].limits;
	}
	pthread_mutex_unlock(&node->call);
	p3_caller_restore(caller);
	return rc;
}

void p3_ni_await_sends(struct p3_nic *nic, uint64_t start)
{
	const uint64_t limit = P3_AWAIT_S * UINT64_C(1000000000);
	struct p3_on_hold held;
	uint64_t gone = p3_now_ns() - start;
	uint32_t left = p3_nic_await_absent(nic, gone < limit ? limit - gone : 0);
	uint32_t late;
	if (!p3_nic_settle(nic, P3_SETTLE_NS, &late) && p3_process.modex)
		p3_modex_say_late(&p3_process, late);
	if (!left)
		return;
	p3_nic_held(nic, &held);
	p3_warn("messages whose descriptors are unlinked are discarded (%u): this "
		"process ends, and the process with node id %u and process id %u has not "
		"called "
		"PtlNIInit within %d s: start that process sooner",
		left, held.who.nid, held.who.pid, P3_AWAIT_S);
}

/* Close an interface, after a bounded wait until sent messages no longer need this
 * process.  Do not hold node->life during the wait: the life thread needs it to process
 * the end of a peer. */
static int ni_close(struct p3_node *node, struct p3_lib_ni *ni)
{
	if (p3_get(&node->ni[0].open) && p3_get(&node->ni[1].open))
		(void)p3_nic_settle(p3_nic(node), P3_SETTLE_NS, NULL); /* the NIC stays */
	else
		p3_ni_await_sends(p3_nic(node), p3_now_ns());
	pthread_mutex_lock(&node->life);
	p3_set(&ni->open, 0);
	int rc = PTL_OK;
	if (p3_users_need_nic(node)) {
		if (!p3_get(&node->ni[0].open) && !p3_get(&node->ni[1].open))
			p3_node_show_nic(node, NULL);
		rc = p3_nic_ni_close(p3_nic(node), p3_get(&ni->handle));
		p3_job_pids(node);
	} else {
		p3_users_stop_nic(node);
	}
	pthread_mutex_unlock(&node->life);
	return rc;
}

int PtlNIFini(ptl_handle_ni_t ni_handle)
{
	struct p3_node *node = p3_node();
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (p3_is_busy())
		return PTL_NO_SPACE;
	struct p3_caller caller = p3_caller_save();
	pthread_mutex_lock(&node->call);
	struct p3_lib_ni *ni = p3_node_find_ni(node, ni_handle);
	int rc = ni ? ni_close(node, ni) : PTL_NI_INVALID;
	pthread_mutex_unlock(&node->call);
	p3_caller_restore(caller);
	return rc;
}

int p3_ni_fini_all(struct p3_node *node)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (p3_get(&node->ni[i].open))
			(void)ni_close(node, &node->ni[i]);
	return PTL_OK;
}

/* ---- ids ---- */

/* Check a question about an interface whose answer goes to out. */
static int ni_ask(struct p3_node *node, ptl_handle_ni_t ni_handle, const void *out)
{
	if (!out)
		return PTL_SEGV;
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	return p3_node_find_ni(node, ni_handle) ? PTL_OK : PTL_NI_INVALID;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t *id)
{
	struct p3_node *node = p3_node();
	int rc = ni_ask(node, ni_handle, id);
	if (rc == PTL_OK)
		*id = (ptl_process_id_t){.nid = node->nid,
			.pid = p3_get(&node->ni[p3_handle_ni(ni_handle)].pid)};
	return rc;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid)
{
	int rc = ni_ask(p3_node(), ni_handle, uid);
	if (rc == PTL_OK)
		*uid = p3_node()->uid;
	return rc;
}

int PtlGetJid(ptl_handle_ni_t ni_handle, ptl_jid_t *jid)
{
	int rc = ni_ask(p3_node(), ni_handle, jid);
	if (rc == PTL_OK)
		*jid = p3_node()->jid;
	return rc;
}

/* ---- status ---- */

int PtlNIStatus(
	ptl_handle_ni_t ni_handle, ptl_sr_index_t register_index, ptl_sr_value_t *status)
{
	if (!status)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c = {.op = P3_OP_NI_STATUS, .handle = ni_handle};
	c.status.index = register_index;
	int rc = p3_nic_do(nic, &c);
	if (rc == PTL_OK)
		*status = c.status.value;
	return rc;
}

/* Return true if all processes that the nid can name are on this host. */
static bool ni_is_near(const struct p3_node *node, uint32_t nid)
{
	uint32_t rank = nid - (node->nid - node->rank);
	if (node->modex)
		return node->launched ? nid == node->nid
				      : !p3_modex_is_far(node->modex, rank);
	return rank < node->size || node->domain[0];
}

int PtlNIDist(
	ptl_handle_ni_t ni_handle, ptl_process_id_t process, unsigned long *distance)
{
	struct p3_node *node = p3_node();
	int rc = ni_ask(node, ni_handle, distance);
	if (rc != PTL_OK)
		return rc;
	if (process.nid == PTL_NID_ANY || process.pid == PTL_PID_ANY)
		return PTL_PROCESS_INVALID;
	*distance = ni_is_near(node, process.nid) ? 0 : 1;
	return PTL_OK;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle)
{
	if (!ni_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_HANDLE_INVALID);
	struct p3_cmd c = {.op = P3_OP_WHOSE, .handle = handle};
	int rc = p3_nic_do(nic, &c);
	if (rc == PTL_OK)
		*ni_handle = c.handle_out;
	return rc;
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2)
{
	return handle1 == handle2 ? PTL_OK : PTL_FAIL;
}

/* ---- access control ---- */

int PtlACEntry(ptl_handle_ni_t ni_handle, ptl_ac_index_t ac_index,
	ptl_process_id_t match_id, ptl_uid_t user_id, ptl_jid_t job_id,
	ptl_pt_index_t pt_index)
{
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c = {.op = P3_OP_AC_ENTRY, .handle = ni_handle};
	c.ac.id = match_id;
	c.ac.index = ac_index;
	c.ac.uid = user_id;
	c.ac.jid = job_id;
	c.ac.pt_index = pt_index;
	return p3_nic_do(nic, &c);
}
