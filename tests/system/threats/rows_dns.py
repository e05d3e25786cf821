# SPDX-License-Identifier: Apache-2.0
"""Names that are asked for, and what is answered."""
import dns_questions  # noqa: F401
import dns_answers  # noqa: F401
import dns_burden  # noqa: F401
