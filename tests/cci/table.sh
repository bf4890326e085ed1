#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of the checklist of CCI and their tests (tests/support/statements.sh).
# shellcheck disable=SC2034
. "$(dirname "$0")/../support/statements.sh"
suite=cci count=137 prefix='' file=conformance-cci keeps=''
columns="lease dedicated one_cpu by_hand"
bad="FAIL none -" some="skip"

preface() {
	cat <<'END'
# Conformance of CCI

This table shows that the library does what the Common Communication Interface, API 2, asks for. A
checklist divides it into 137 statements; each statement is one test in `tests/cci`. Names of return
codes, options and events are shortened: RNR is `CCI_ERR_RNR`, RECV is `CCI_EVENT_RECV`.

The columns are settings: `PTL3_MODE=lease` and `PTL3_MODE=dedicated` on two CPUs; lease on one CPU,
with all processes of the test; and processes of a domain that are started by hand, without yod. *skip* marks a test that means nothing in a setting, and
says why when it runs. A W marks a statement that the specification supports weakly only: its test may fail.
Tests that run in ctest do a part of the rounds that the checklist names; `SUITE_SHARE=1` does all of them.

`tests/cci/table.sh` writes the table from the results of `ctest -L cci`. The test `cci_table`
fails if the table is out of date, or if a test without W fails.

| no. | W | statement | test | lease | dedicated | one CPU | by hand |
|--:|:-:|---|---|---|---|---|---|
END
}

statements "$@"
