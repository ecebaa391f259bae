"""Tickets: each lets one client connect to one terminal, once and soon, without the credential."""

import time

from codeloop.schema.limits import PTY_TICKET, PTY_TICKETS


class Tickets:
    """The tickets of one project that are not used yet. `lifetime`: seconds."""

    def __init__(self, lifetime: float = PTY_TICKET.seconds) -> None:
        self._lifetime = lifetime
        self._open: dict[str, tuple[str, float]] = {}

    def give(self, pty_id: str) -> str:
        """Give a new ticket for a terminal."""
        import uuid  # 2.5 ms

        if len(self._open) >= PTY_TICKETS.value:
            del self._open[next(iter(self._open))]
        ticket = str(uuid.uuid4())
        self._open[ticket] = (pty_id, time.monotonic() + self._lifetime)
        return ticket

    def take(self, ticket: str, pty_id: str) -> bool:
        """Use a ticket up, and tell whether it was one for this terminal that had not expired."""
        named, until = self._open.pop(ticket, ("", 0.0))
        return named == pty_id and time.monotonic() < until
