#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of the checklist of Portals and their tests (tests/support/statements.sh).
# shellcheck disable=SC2034
. "$(dirname "$0")/../support/statements.sh"
suite=spec count=267 prefix='' file=conformance keeps=''
columns="lease dedicated cma_off four"
bad="FAIL none - skip" some="ok (2)"

preface() {
	cat <<'END'
# Conformance

This table shows that libportals does what the Portals 3.3 document says. A checklist divides the
document into 267 statements; each statement is one test in `tests/spec`. Names of return codes,
options and events are shortened: SEGV is `PTL_SEGV`, UNLINK is `PTL_UNLINK` or `PTL_EVENT_UNLINK`.

The columns are settings: `PTL3_MODE=lease`, `PTL3_MODE=dedicated` and `PTL3_MOVER=window`, each in jobs
of one node (which sends to itself) and of two nodes, then jobs of four nodes with default settings.
*ok (2)* marks a test that needs two nodes, and was left out in jobs of one. A W marks a statement
that the document supports weakly only: its test may fail.

Statement 129 sets no time. A conditional update returns NO_UPDATE until the operation on the
descriptor has ended; while that operation waits for a process of the job that has not called
`PtlNIInit`, this takes up to 300 s, or as long as PTL3_ABSENT says. The test `mp_life*`
checks this.

`tests/spec/table.sh` writes the table from the results of `ctest -L spec`. The test
`spec_conformance` fails if the table is out of date, or if a test without W fails.

| no. | W | statement | test | lease | dedicated | no CMA | 4 nodes |
|--:|:-:|---|---|---|---|---|---|
END
}

statements "$@"
