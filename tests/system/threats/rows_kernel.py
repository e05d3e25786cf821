# SPDX-License-Identifier: Apache-2.0
"""Around the launcher."""
import kernel_calls  # noqa: F401
import kernel_files  # noqa: F401
