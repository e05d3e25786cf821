# SPDX-License-Identifier: Apache-2.0
"""Cases of our own, beyond the catalogue."""
import own_messages  # noqa: F401
import own_low  # noqa: F401
