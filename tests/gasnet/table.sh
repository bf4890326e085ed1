#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of the checklist of GASNet and their tests (tests/support/statements.sh).
# shellcheck disable=SC2034
. "$(dirname "$0")/../support/statements.sh"
suite=gasnet count=167 prefix=GN. file=conformance-gasnet keeps=1
columns="seq parsync par dedicated debug"
bad="FAIL none" some="ok"

preface() {
	cat <<'END'
# Conformance of GASNet

This table shows that GASNet over libportals does what specification 1.8 says. A checklist divides
the specification into 167 statements, the last twelve about the conduit; each statement is one
test in `tests/gasnet`. Names of return codes are shortened: BAD_ARG is `GASNET_ERR_BAD_ARG`.

The columns are settings: the libraries for GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR, then that for
GASNET_PAR with `PTL3_MODE=dedicated`, and with checks (GASNET_DEBUG). In
each of them jobs of several sizes run: of 1, 2, 3 and 8 nodes in the first three, of 2 and 3 in the
others. *skip* marks a statement of threads or of checks where there are none. A W marks a statement
with weak evidence: its test may fail.

`tests/gasnet/table.sh` writes the table from the results of `ctest -L gasnet` in a build with
`P3_GASNET_WHOLE=ON`. The test `gasnet_conformance` fails if the table is out of date, or if a test
without W fails; in other builds it compares the settings that run there.

| no. | W | statement | test | SEQ | PARSYNC | PAR | dedicated | debug |
|--:|:-:|---|---|---|---|---|---|---|
END
}

statements "$@"
