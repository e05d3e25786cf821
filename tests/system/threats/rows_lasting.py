# SPDX-License-Identifier: Apache-2.0
"""Faults of ours, and what is written down."""
import lasting_faults  # noqa: F401
import lasting_written  # noqa: F401
