/* SPDX-License-Identifier: BSD-3-Clause */
/* The cards of the ranks of a job on several hosts, and their use. */
#include "lib/domain/internal.h"
#include "shm/conf.h"
#include "shm/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SOCKETS       "auto"                /* no provider of libfabric */
#define MODEX_LATE_NS UINT64_C(10000000000) /* wait for first connections, then a line */
#define NAMED         2u                    /* ranks that this line names */

/* ---- hosts ---- */

static void modex_free(struct p3_modex *w)
{
	free(w->leader);
	free(w->card);
	free(w->remote);
	free(w);
}

static struct p3_modex *modex_new(const struct p3_node *node)
{
	struct p3_modex *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->ops = node->modex_ops;
	w->rank = node->rank;
	w->size = node->size;
	w->nid = node->nid;
	p3_set(&w->listener, (uint32_t)-1);
	w->leader = calloc(w->size, sizeof *w->leader);
	w->card = calloc(w->size, sizeof *w->card);
	w->remote = calloc(w->size, sizeof *w->remote);
	if (!w->leader || !w->card || !w->remote) {
		modex_free(w);
		return NULL;
	}
	for (uint32_t i = 0; i < w->size; i++) {
		w->remote[i] = (struct p3_remote){.rank = i, .up.fd = -1, .next.fd = -1};
		p3_call_init(&w->remote[i].call);
	}
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		p3_call_init(&w->unauth[i].call);
	return w;
}

int p3_modex_place(struct p3_node *node)
{
	if (node->modex)
		return 0;
	struct p3_modex *w = modex_new(node);
	int rc = w ? w->ops->hosts(node, w->leader) : -ENOMEM;
	if (rc && w)
		modex_free(w);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < w->size; i++) {
		w->hosts += w->leader[i] == i;
		w->here += w->leader[i] == w->leader[w->rank];
	}
	node->modex = w;
	return 0;
}

uint32_t p3_modex_hosts(const struct p3_modex *w)
{
	return w->hosts;
}

bool p3_modex_is_far(const struct p3_modex *w, uint32_t rank)
{
	return w && rank < w->size && w->leader[rank] != w->leader[w->rank];
}

uint32_t p3_modex_nid(const struct p3_modex *w, uint32_t rank)
{
	uint32_t before = 0;
	for (uint32_t i = 0; i < w->leader[rank]; i++)
		before += w->leader[i] == i;
	return w->nid + before;
}

/* ---- the own card ---- */

/* Return the provider of libfabric that this process was told to use, or NULL. */
static const char *modex_wished_provider(void)
{
	const char *text = p3_conf_text(P3_CONF_FABRIC);
	return text && strcmp(text, SOCKETS) != 0 ? text : NULL;
}

/* Return the endpoints over sockets, or over a provider; NULL after an error line. */
static const struct p3_endpoint_ops *modex_endpoints(const char *provider)
{
	if (strcmp(provider, SOCKETS) == 0)
		return &p3_endpoint_stream;
#ifdef P3_FABRIC
	return p3_nic_fabric();
#else
	p3_error("PTL3_FABRIC is '%s', and this libportals was built without libfabric; "
		 "build it with libfabric's headers (Debian: libfabric-dev), or unset "
		 "PTL3_FABRIC",
		provider);
	return NULL;
#endif
}

/* Write this process's card.  If that fails, its magic is 0: so the others need not wait
 * for this rank. */
static int modex_make_card(struct p3_node *node, struct p3_card *card)
{
	struct p3_modex *w = node->modex;
	const struct p3_modex_ops *x = w->ops;
	*card = (struct p3_card){.size = w->size,
		.rank = w->rank,
		.leader = w->leader[w->rank],
		.layout = P3_LAYOUT_WORD,
		.network = p3_tcp_network(),
		.nid = node->nid};
	const char *provider = modex_wished_provider();
	strncpy(card->provider, provider ? provider : SOCKETS, sizeof card->provider - 1);
	int rc = p3_mac_load();
	card->has_aes = p3_mac_has_aes();
	rc = rc || modex_endpoints(card->provider) ? rc : -ENOENT;
	uint32_t other = 0; /* the first rank on another host */
	while (other < w->size && !p3_modex_is_far(w, other))
		other++;
	rc = rc ? rc
		: p3_tcp_choose_address(
			  other < w->size ? x->host_name(node, other) : NULL,
			  x->own_address ? x->own_address(node) : NULL, card);
	int fd = rc ? rc : p3_tcp_listen(card);
	if (fd >= 0) {
		w->listener_file = p3_fd_file(fd);
		p3_set(&w->listener, (uint32_t)fd);
	}
	rc = fd < 0 ? fd : 0;
	if (!rc && !w->rank && /* make the secret of the job */
		getrandom(card->secret, sizeof card->secret, 0) !=
			(ssize_t)sizeof card->secret)
		rc = -EIO;
	card->magic = rc ? 0 : P3_CARD_MAGIC;
	return rc;
}

/* ---- the cards of all ---- */

/* Say that a rank's address is of another family than that of rank 0. */
static int modex_say_family(struct p3_node *node, uint32_t rank)
{
	const struct p3_modex *w = node->modex;
	const char *host = w->ops->host_name(node, rank);
	const char *first = w->ops->host_name(node, 0);
	char at[P3_TCP_TEXT], first_at[P3_TCP_TEXT];
	p3_tcp_print_address(&w->card[rank], at);
	p3_tcp_print_address(&w->card[0], first_at);
	p3_error("rank %u on %s listens at %s, and rank 0 on %s at %s; all ranks need "
		 "IPv4, or all IPv6: set PTL3_FABRIC_NET, alike for all, to a network "
		 "that each host has, as in 10.1.0.0/16",
		rank, host ? host : "?", at, first ? first : "?", first_at);
	return -EAFNOSUPPORT;
}

/* Check what a rank has published.  Print one line about the first difference. */
static int modex_check_card(const struct p3_node *node, uint32_t rank)
{
	const struct p3_modex *w = node->modex;
	const struct p3_card *c = &w->card[rank], *own = &w->card[w->rank];
	/* It has what this process has computed. */
	bool right = c->size == w->size && c->rank == rank &&
		     c->leader == w->leader[rank] &&
		     (!node->launched || c->nid == p3_modex_nid(w, rank));
	/* A rank of another host has an address of this one; hosts of tests may share a
	 * network. */
	bool mistaken = p3_modex_is_far(w, rank) && own->network && c->network &&
			own->network != c->network && p3_tcp_is_same_host(own, c);
	if (!c->magic)
		p3_error("rank %u cannot reach other hosts, as its own error line tells; "
			 "this rank gives up with it",
			rank);
	else if (c->magic != P3_CARD_MAGIC || c->layout != P3_LAYOUT_WORD)
		p3_error(
			"rank %u has layout %#llx of libportals, this one %#llx; run all "
			"ranks with one build of it",
			rank, (unsigned long long)c->layout,
			(unsigned long long)P3_LAYOUT_WORD);
	else if (!right)
		p3_error("rank %u says that it is rank %u of %u with node id %#x, on the "
			 "host of rank %u; set PTL3_NID alike for all ranks, and see "
			 "that one launcher has started them",
			rank, c->rank, c->size, c->nid, c->leader);
	else if (mistaken)
		p3_tcp_say_same_address(rank, c);
	else
		return 0;
	return -EPROTO;
}

static int modex_use(struct p3_modex *w)
{
	uint32_t seconds = 0;
	struct p3_card *first = &w->card[0];
	bool aes = true;
	for (uint32_t i = 0; i < w->size; i++)
		aes &= w->card[i].has_aes;
	p3_mac_use(aes);
	memcpy(&w->secret, first->secret, sizeof w->secret);
	explicit_bzero(first->secret, sizeof first->secret);
	first->provider[sizeof first->provider - 1] = '\0';
	w->far.host = w->leader;
	w->far.provider = first->provider;
	w->far.ops = modex_endpoints(first->provider);
	(void)p3_conf_far_timeout(p3_conf_text(P3_CONF_FAR_TIMEOUT), &seconds);
	w->timeout_s = seconds;
	w->far.settle_ns = seconds ? seconds * UINT64_C(1000000000) : UINT64_MAX;
	w->far.streams = w->streams = p3_streams_new(w->size);
	if (w->streams)
		return w->far.ops ? 0 : -ENOENT;
	int rc = -errno;
	p3_error("rank %u cannot wait for other hosts: %s; raise ulimit -n, or ulimit -v",
		w->rank, strerror(-rc));
	return rc;
}

static int modex_read(struct p3_node *node)
{
	struct p3_modex *w = node->modex;
	int rc = 0;
	for (uint32_t i = 0; i < w->size && !rc; i++)
		rc = w->ops->get(node, i, &w->card[i]);
	for (uint32_t i = 0; i < w->size && !rc; i++)
		rc = modex_check_card(node, i);
	for (uint32_t i = 1; i < w->size && !rc; i++)
		if (w->card[i].family != w->card[0].family)
			rc = modex_say_family(node, i);
	const char *wish = modex_wished_provider();
	if (!rc && wish && strcmp(wish, w->card[0].provider) != 0) {
		p3_error("PTL3_FABRIC is '%s' here, and rank 0 uses '%s'; set it alike "
			 "for all ranks (mpirun -x PTL3_FABRIC), or for none",
			wish, w->card[0].provider);
		rc = -EINVAL;
	}
	return rc;
}

int p3_modex_enter(struct p3_node *node)
{
	struct p3_modex *w = node->modex;
	struct p3_card card;
	if (w->failed)
		p3_error(
			"this rank could not be connected with other hosts before, as an "
			"earlier line tells; start the job again");
	if (w->is_over || w->failed)
		return w->failed;
	int own = modex_make_card(node, &card);
	int rc = w->ops->put(node, &card);
	explicit_bzero(card.secret, sizeof card.secret);
	rc = rc ? rc : w->ops->fence(node);
	rc = own ? own : rc;
	rc = rc ? rc : modex_read(node);
	w->failed = rc ? rc : modex_use(w);
	if (w->failed)
		return w->failed;
	w->is_over = true;
	struct p3_card self = w->card[w->rank];
	self.port = 0;
	p3_tcp_print_address(&self, w->address);
	w->far.address = w->address;
	node->far = &w->far;
	return 0;
}

/* ---- lines about remote processes ---- */

#define SEE_FIREWALL                                                                     \
	"operations with it fail (see PTL3_FABRIC_NET, and the firewall between the "    \
	"hosts)"

void p3_remote_say_unanswered(const struct p3_modex *w, struct p3_remote *r)
{
	char at[P3_TCP_TEXT];
	p3_tcp_print_address(&w->card[r->rank], at);
	if (!r->said_unanswered)
		p3_warn("rank %u (%s) has not answered a call for %u s: messages for it "
			"wait (see whether it is stopped, or another program has its "
			"port)",
			r->rank, at, w->timeout_s);
	r->said_unanswered = true;
}

void p3_remote_say_forged(struct p3_modex *w, const struct p3_remote *r)
{
	char at[P3_TCP_TEXT];
	p3_tcp_print_address(&w->card[r->rank], at);
	if (!w->said_forged)
		p3_warn("the connection with rank %u (%s) has brought bytes that this "
			"rank has not sent; it and all that follow are made again, and "
			"nothing is lost (find the sender on that network, or name a "
			"private one by PTL3_FABRIC_NET)",
			r->rank, at);
	w->said_forged = true;
}

void p3_remote_say_why_ended(const struct p3_modex *w, const struct p3_remote *r, int why)
{
	bool begun = r->begun, *said = &w->remote[w->leader[r->rank]].said_host;
	const char *out = r->took_call ? "it takes calls, and then nothing comes from it"
				       : "it does not answer calls";
	const char *in = r->has_called ? "its own calls come, and get no answer"
				       : "none of its calls comes";
	char at[P3_TCP_TEXT];
	p3_tcp_print_address(&w->card[r->rank], at);
	if (why == -ETIMEDOUT || (why == -ECONNREFUSED && !begun)) {
		if (!*said && why != -ETIMEDOUT)
			p3_warn("rank %u (%s) has ended, or its host refuses the first "
				"call: " SEE_FIREWALL,
				r->rank, at);
		else if (!*said && !begun)
			p3_warn("rank %u (%s) has not answered the first call (%s; "
				"%s): " SEE_FIREWALL,
				r->rank, at, out, in);
		else if (!*said)
			p3_warn("the host of rank %u (%s) is silent for %u s (%s; %s): "
				"operations with its ranks fail; a network that comes "
				"back later does not undo this (PTL3_FAR_TIMEOUT, and "
				"the firewall between the hosts)",
				r->rank, at, w->timeout_s, out, in);
		*said = true;
	} else if (why == -EACCES || why == -EPROTO) {
		p3_warn("rank %u (%s) sent what is no packet of this job; operations "
			"with it fail (see which program listens at that port)",
			r->rank, at);
	} else if (why != -EPIPE && why != -ECONNREFUSED) {
		p3_warn("rank %u (%s) cannot be reached: %s; " SEE_FIREWALL, r->rank, at,
			strerror(-why));
	}
}

/* ---- first connections that take long ---- */

static const char *modex_state_of(const struct p3_modex *w, const struct p3_remote *r)
{
	if (r->call.state == P3_CALL_DIALING)
		return "its host does not answer the call";
	if (r->call.state != P3_CALL_NONE)
		return "it has not answered the call";
	return w->rank > r->rank ? "to be called again" : "it has not called";
}

void p3_modex_say_unmet(struct p3_modex *w, uint64_t now)
{
	uint32_t n = 0; /* ranks that are waited for; the list has NAMED of them */
	char list[NAMED * 120] = "", at[P3_TCP_TEXT];
	uint64_t waited = now - w->begun_ns, half = w->timeout_s * UINT64_C(500000000);
	/* At least one line comes before a call ends for want of an answer. */
	if (w->said_late ||
		waited < (half && half < MODEX_LATE_NS ? half : MODEX_LATE_NS))
		return;
	for (uint32_t i = 0; i < w->size; i++) {
		const struct p3_remote *r = &w->remote[i];
		size_t len = strlen(list);
		if (!p3_modex_is_far(w, i) || r->ended || r->begun || ++n > NAMED)
			continue;
		p3_tcp_print_address(&w->card[i], at);
		snprintf(list + len, sizeof list - len, "%srank %u (%s): %s",
			n > 1 ? ", " : "", r->rank, at, modex_state_of(w, r));
	}
	w->said_late = true;
	if (n)
		p3_warn("rank %u waits since %u s for its first connections with %u "
			"ranks on other hosts: %s%s; see whether their hosts are up, the "
			"firewall lets all TCP ports through, and dmesg shows an "
			"overflow of the neighbor table (gc_thresh3)",
			w->rank, (uint32_t)((waited + 999999999) / 1000000000), n, list,
			n > NAMED ? ", ..." : "");
}

/* ---- the end ---- */

void p3_modex_say_late(const struct p3_node *node, uint32_t rank)
{
	const struct p3_modex *w = node->modex;
	char at[P3_TCP_TEXT] = "";
	if (rank >= w->size)
		return;
	p3_tcp_print_address(&w->card[rank], at);
	p3_warn("rank %u ends, and rank %u (%s) has not confirmed all messages within %u "
		"s: messages may be lost; let that process run, or set a longer "
		"PTL3_FAR_TIMEOUT",
		w->rank, rank, at, w->timeout_s);
}

void p3_modex_leave(struct p3_node *node)
{
	const struct p3_modex *w = node->modex;
	if (w && (w->is_over || w->failed))
		w->ops->end(node);
}

void p3_modex_exit(struct p3_node *node)
{
	if (node->modex)
		node->modex->ops->end(node);
}

void p3_remote_close_connection(struct p3_connection *c)
{
	if (c->fd >= 0)
		p3_fd_close_own(c->fd, c->file);
	c->fd = -1;
}

void p3_remote_close(struct p3_remote *r)
{
	p3_call_close(&r->call);
	p3_remote_close_connection(&r->up);
	p3_remote_close_connection(&r->next);
}

void p3_modex_forget(struct p3_node *node)
{
	struct p3_modex *w = node->modex;
	if (!w)
		return;
	for (uint32_t i = 0; i < w->size; i++)
		p3_remote_close(&w->remote[i]);
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		p3_call_close(&w->unauth[i].call);
	if (w->streams)
		p3_streams_forget(w->streams);
	int fd = (int)p3_get(&w->listener);
	if (fd >= 0)
		p3_fd_close_own(fd, w->listener_file);
}
