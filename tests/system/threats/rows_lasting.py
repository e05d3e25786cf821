# SPDX-License-Identifier: Apache-2.0
"""Faults of ours, and what is written down. What is written comes first: it looks
at a quiet uplink, which floods of the others would not leave."""
import lasting_written  # noqa: F401
import lasting_faults  # noqa: F401
