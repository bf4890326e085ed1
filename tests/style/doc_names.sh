#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Names in documents and in comments exist in the tree: doc_names.py.
. "${0%/*}/sources.sh"
exec python3 tests/style/doc_names.py "$root"
