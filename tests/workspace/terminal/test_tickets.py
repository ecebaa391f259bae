"""Tickets for terminals."""

import time

from codeloop.workspace.terminal.terminals import Tickets


def test_a_ticket_is_good_once_for_its_terminal_and_not_for_ever() -> None:
    tickets = Tickets()
    first, second = tickets.give("pty_a"), tickets.give("pty_a")
    assert first != second
    assert not tickets.take("", "pty_a")
    assert not tickets.take(first, "pty_b"), "another terminal"
    assert not tickets.take(first, "pty_a"), "a ticket that was shown is used"
    assert tickets.take(second, "pty_a")
    assert not tickets.take(second, "pty_a")
    short = Tickets(0.01)
    late = short.give("pty_a")
    time.sleep(0.02)
    assert not short.take(late, "pty_a")


def test_tickets_that_nobody_uses_do_not_pile_up() -> None:
    tickets = Tickets()
    given = [tickets.give("pty_a") for _ in range(200)]
    assert sum(tickets.take(ticket, "pty_a") for ticket in given) == 64
