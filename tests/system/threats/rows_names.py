# SPDX-License-Identifier: Apache-2.0
"""Names, however they are spelled, by whatever door."""
from frame import NAME_DOORS, row


@row("N7", doors=NAME_DOORS)
def mixed_case(world, door):
    """Case is ignored in every door; DNS answers in the case of the question."""
    box = world.box()
    box.denied(door, "EVIL.Test", "not_in_policy" if door not in ("sni", "host")
               else "name_mismatch")
    p = box.allowed(door, "AlLoWeD.TeSt")
    if door == "dns":
        assert "AlLoWeD" in p["echo"]
