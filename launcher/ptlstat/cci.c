/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints of CCI: those of a node, and those whose program holds its peers up. */
#include "launcher/ptlstat/lines.h"
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/ptlstat/text.h"

void ptl_cci_describe(const struct ptl_node *n, struct ptl_text *t)
{
	const uint64_t *w = n->word;
	if (!w[P3_G_CCI_ENDPOINTS])
		return;
	ptl_add(t, "; %llu CCI endpoint%s, %llu connection%s",
		(unsigned long long)w[P3_G_CCI_ENDPOINTS],
		ptl_plural(w[P3_G_CCI_ENDPOINTS]),
		(unsigned long long)w[P3_G_CCI_CONNECTIONS],
		ptl_plural(w[P3_G_CCI_CONNECTIONS]));
	if (w[P3_C_CCI_RNR_SENT])
		ptl_add(t, ", refused %llu for want of a receive buffer",
			(unsigned long long)w[P3_C_CCI_RNR_SENT]);
	if (w[P3_C_CCI_RNR_GOT])
		ptl_add(t, ", was refused %llu times",
			(unsigned long long)w[P3_C_CCI_RNR_GOT]);
	if (w[P3_C_CCI_DROPS])
		ptl_add(t, ", dropped %llu unreliable",
			(unsigned long long)w[P3_C_CCI_DROPS]);
}

/* Describe an endpoint whose buffers are all in use. */
static void tell_full(
	const struct ptl_picture *p, const struct ptl_endpoint *e, struct ptl_text *t)
{
	ptl_add(t,
		PTL_NODE " holds all receive buffers of endpoint %u (%u) since " PTL_TIME
			 "%.1f s" PTL_TIME ": ",
		e->number, e->buffers, ptl_seconds(p, e->full_since));
	if (e->unread)
		ptl_add(t, "%llu event%s wait for cci_get_event",
			(unsigned long long)e->unread, ptl_plural(e->unread));
	else
		ptl_add(t, "its program has taken the events, and has yet to return them "
			   "(cci_return_event)");
}

static void tell_unanswered(
	const struct ptl_picture *p, const struct ptl_endpoint *e, struct ptl_text *t)
{
	ptl_add(t,
		PTL_NODE
		": %u connect request%s not answered at endpoint %u since " PTL_TIME
		"%.1f s" PTL_TIME " (cci_accept or cci_reject)",
		e->requests, ptl_plural(e->requests), e->number,
		ptl_seconds(p, e->asked_since));
}

uint32_t ptl_cci_blame(const struct ptl_picture *p, double least_s,
	void (*line)(void *arg, uint32_t node, const char *text), void *arg)
{
	uint32_t said = 0;
	for (uint32_t i = 0; i < p->size; i++)
		for (uint32_t k = 0; k < P3_CCI_SHOWN; k++) {
			const struct ptl_endpoint *e = &p->node[i].endpoint[k];
			struct ptl_text full = {.n = 0}, asked = {.n = 0};
			if (!e->number || p->node[i].unseen || !ptl_is_alive(&p->node[i]))
				continue;
			if (ptl_seconds(p, e->full_since) >= least_s)
				tell_full(p, e, &full);
			if (ptl_seconds(p, e->asked_since) >= least_s)
				tell_unanswered(p, e, &asked);
			if (full.n)
				line(arg, i, full.s);
			if (asked.n)
				line(arg, i, asked.s);
			said += (uint32_t)(full.n != 0) + (uint32_t)(asked.n != 0);
		}
	return said;
}
