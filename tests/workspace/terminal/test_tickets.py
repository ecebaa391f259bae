"""Tickets for terminals."""

import time

from codeloop.workspace.terminal.terminals import ConnectionTickets


def test_a_ticket_is_good_once_for_its_terminal_and_not_for_ever() -> None:
    tickets = ConnectionTickets()
    first, second = tickets.issue("pty_a"), tickets.issue("pty_a")
    assert first != second
    assert not tickets.redeem("", "pty_a")
    assert not tickets.redeem(first, "pty_b"), "another terminal"
    assert not tickets.redeem(first, "pty_a"), "a ticket that was shown is used"
    assert tickets.redeem(second, "pty_a")
    assert not tickets.redeem(second, "pty_a")
    short = ConnectionTickets(0.01)
    late = short.issue("pty_a")
    time.sleep(0.02)
    assert not short.redeem(late, "pty_a")


def test_tickets_that_nobody_uses_do_not_pile_up() -> None:
    tickets = ConnectionTickets()
    given = [tickets.issue("pty_a") for _ in range(200)]
    assert sum(tickets.redeem(ticket, "pty_a") for ticket in given) == 64
