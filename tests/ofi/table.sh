#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of the checklist of the libfabric provider and their tests
# (tests/support/statements.sh).
# shellcheck disable=SC2034
. "$(dirname "$0")/../support/statements.sh"
suite=ofi count=98 prefix=OFI. file=conformance-ofi keeps=1
columns="lease dedicated by_hand shm rxm"
bad="FAIL none -" some="skip"
# Three hosts (tests/hosts).
later="92"

preface() {
	cat <<'END'
# Conformance of the libfabric provider

This table shows that the provider `portals` does what its contract and libfabric 1.17 say. A checklist
has 98 statements; each is one test in `tests/ofi`, written against libfabric's interface. Names of codes
and flags are shortened: EAGAIN is `-FI_EAGAIN`.

The columns are settings: ranks of a job with `PTL3_MODE=lease` and `PTL3_MODE=dedicated`; processes of a
domain that are started by hand; then, as a check of the tests, libfabric's own providers `shm` and
`tcp;ofi_rxm`. *skip* marks a test that means nothing in a setting or asks for what the other provider
does not claim or have; it says why when it runs. Tests that run in ctest do a part of the rounds that the
checklist names; `SUITE_SHARE=1` does all of them (`ofi_messages_whole`, `ofi_rma_whole`, `ofi_atomics_whole`).

OFI.92 runs on three hosts (`hosts_ofi`, `hosts_ofi_messages`).

`tests/ofi/table.sh` writes the table from the results of `ctest -L ofi`. The test `ofi_table` fails if
the table is out of date, or if a test fails.

| no. | W | statement | test | lease | dedicated | by hand | shm | rxm |
|--:|:-:|---|---|---|---|---|---|---|
END
}

statements "$@"
