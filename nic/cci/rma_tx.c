/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA operations of this node. */
#include "nic/cci/rma_tx.h"

bool p3_cci_rma_push(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	(void)n, (void)p;
	return p3_list_empty(&conn->rma);
}

bool p3_cci_rma_answered(struct p3_nic *n, struct p3_peer *p, struct p3_cci_tx *tx,
	const struct p3_cell *c)
{
	(void)n, (void)p, (void)tx, (void)c;
	return false;
}

void p3_cci_rma_orphan(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	(void)n, (void)p, (void)c;
}

void p3_cci_rma_withdraw(struct p3_nic *n, struct p3_cci_tx *tx)
{
	(void)n, (void)tx;
}

void p3_cci_rma_withdraw_all(struct p3_nic *n, struct p3_cci_conn *conn)
{
	(void)n, (void)conn;
}
