# SPDX-License-Identifier: Apache-2.0
"""Packets past the proxy."""
import packets_far  # noqa: F401
import packets_near  # noqa: F401
