/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fw - the headers of all rooms of the firmware at once
 *
 * host/ has the calls of host threads, run/ the pass and the NIC's thread, proto/
 * requests and responses, xfer/ long transfers, match/ matching, obj/ the objects of
 * programs, wire/ the wires, report/ all that people and tools read.
 */
#ifndef P3_NIC_FW_H
#define P3_NIC_FW_H

#include "nic/match/ahead.h"
#include "nic/match/match.h"
#include "nic/obj/eq.h"
#include "nic/obj/event.h"
#include "nic/obj/host.h"
#include "nic/obj/md.h"
#include "nic/obj/me.h"
#include "nic/obj/ni.h"
#include "nic/obj/region.h"
#include "nic/obj/span.h"
#include "nic/obj/table.h"
#include "nic/proto/answer.h"
#include "nic/proto/close.h"
#include "nic/proto/copy.h"
#include "nic/proto/exchange.h"
#include "nic/proto/hold.h"
#include "nic/proto/ids.h"
#include "nic/proto/join.h"
#include "nic/proto/lose.h"
#include "nic/proto/peer.h"
#include "nic/proto/pending.h"
#include "nic/proto/reply.h"
#include "nic/proto/rx.h"
#include "nic/proto/tx.h"
#include "nic/report/dump.h"
#include "nic/report/mirror.h"
#include "nic/report/trace.h"
#include "nic/report/why.h"
#include "nic/run/commands.h"
#include "nic/run/lease.h"
#include "nic/run/looks.h"
#include "nic/run/pass.h"
#include "nic/run/self.h"
#include "nic/run/wait.h"
#include "nic/run/wake.h"
#include "nic/xfer/xfer.h"

#endif
