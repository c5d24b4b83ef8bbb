"""Speech to the operator of this machine."""

from typing import Any

from reeve_worker.requests import call


async def send(text: str) -> dict[str, Any]:
    """Send text to the operator; return the receipt.

    text: 1 to 32,768 bytes of UTF-8.
    Receipt: effect_id, status ("confirmed" or "held"), event_id (set exactly when
    confirmed), reason (set exactly when held). Confirmed means that the message is stored
    for the operator, not that anyone has read it; held means that a review stopped it
    and the operator decides.
    """
    value: dict[str, Any] = await call("local.send", text=text)
    return value
