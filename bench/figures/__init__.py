# SPDX-License-Identifier: BSD-3-Clause
"""figures - what the commands of bench have in common: running programs, statistics, answers, and
pictures."""
