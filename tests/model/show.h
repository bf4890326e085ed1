/* SPDX-License-Identifier: BSD-3-Clause */
/* show - operations and events as text for people */
#ifndef P3_TESTS_MODEL_SHOW_H
#define P3_TESTS_MODEL_SHOW_H

#include "model/model.h"

const char *show_kind(const struct m_op *op);
void show_op(char *text, size_t len, const struct m_op *op);
void show_event(char *text, size_t len, const ptl_event_t *ev);
void show_expected(char *text, size_t len, const struct m_event *ev,
	const ptl_process_id_t *initiator, ptl_handle_md_t md);

#endif
