"""One-time tickets, by which clients connect to terminals."""

import time

from codeloop.schema.bounds.server import PTY_TICKET, PTY_TICKETS


class ConnectionTickets:
    """The unused tickets of one project, each for one connection to a terminal. `lifetime`: in seconds.

    Browsers can't send a header with a WebSocket, so the ticket in its URL takes the place of the credential.
    """

    def __init__(self, lifetime: float = PTY_TICKET.seconds) -> None:
        self._lifetime = lifetime
        # Ticket -> the terminal's id, and when the ticket expires.
        self._tickets: dict[str, tuple[str, float]] = {}

    def issue(self, pty_id: str) -> str:
        """Return a new ticket for a terminal. The oldest is dropped when there are too many."""
        # Imported here: it takes 2.5 ms.
        import uuid

        if len(self._tickets) >= PTY_TICKETS.value:
            del self._tickets[next(iter(self._tickets))]
        ticket = str(uuid.uuid4())
        self._tickets[ticket] = (pty_id, time.monotonic() + self._lifetime)
        return ticket

    def redeem(self, ticket: str, pty_id: str) -> bool:
        """Use up a ticket. Returns whether it was for this terminal and had not expired."""
        issued_for, deadline = self._tickets.pop(ticket, ("", 0.0))
        return issued_for == pty_id and time.monotonic() < deadline
