"""Formats the reports of `/cost`, `/context`, `/permissions` and `/memory` as lines of text."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from codeloop.client.formatting import (
    align_table,
    format_cost,
    format_count,
    format_time,
    measure_width,
)
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.project import MemoryNote
from codeloop.schema.api.session_reports import SessionContext, SessionCost
from codeloop.schema.message import Tokens
from codeloop.schema.permission import Decision, Grant, PermissionsInForce

MAX_NAME = 60
"""Characters of a name."""
UNLIMITED_WIDTH = 1_000
"""Cells: a width that every table fits."""
BAR_WIDTH = 30
"""Cells of a bar for the whole context window."""
UNKNOWN_PRICE = "price unknown"
# The groups of a context report, in the order of its rows.
_CONTEXT_GROUPS = ("system prompt", "instructions", "tools", "MCP", "conversation")
_COST_HEADINGS = ("", "steps", "input", "cached", "output", "reasoning", "cost")


def format_cost_report(cost: SessionCost, width: int = UNLIMITED_WIDTH) -> list[str]:
    """Format the tokens and cost of a session: by model, by subagent, and the total.

    As a table where it fits `width` cells, else each name with its figures below it.
    """
    paid_before = f"Not in it: {format_cost(cost.before)} that was paid before the copy was made; session lists add it."
    before = [paid_before] if cost.before else []
    if not cost.tokens.all and not cost.cost:
        return ["Nothing was used yet.", *before]
    rows: list[tuple[str, ...]] = [_COST_HEADINGS]
    is_known = all(model.is_priced for model in cost.models)
    for model in cost.models:
        # A model that refused, or was killed before a service counted anything.
        if not model.tokens.all and not model.cost:
            continue
        money = _format_price(model.cost, model.tokens, is_priced=model.is_priced)
        rows.append(
            (
                one_line(model.model, MAX_NAME),
                str(model.steps),
                *_format_tokens(model.tokens),
                money,
            )
        )
    for each in cost.subagents:
        name = one_line(f"subagent {each.agent}: {each.title}", MAX_NAME)
        rows.append(
            (
                name,
                "",
                *_format_tokens(each.tokens),
                _format_price(each.cost, each.tokens, is_priced=is_known),
            )
        )
    total = _format_price(cost.cost, cost.tokens, is_priced=is_known)
    rows.append(("total, with subagents", "", *_format_tokens(cost.tokens), total))
    notes = (
        [f"{format_cost(cost.discarded)} of it is for what was undone or deleted."]
        if cost.discarded
        else []
    )
    notes += before
    notes += (
        []
        if is_known
        else ["No price is known of some models: set cost of the model in the configuration."]
    )
    notes += ["~: estimated, as no service has counted it."] if cost.tokens.estimated else []
    table = align_table(rows, right_aligned=range(1, len(_COST_HEADINGS)))
    return [*(table if _fits(table, width) else _stack_rows(rows)), *notes]


def format_context_report(context: SessionContext, width: int = UNLIMITED_WIDTH) -> list[str]:
    """Format the use of a session's context window: a row and a bar for each part.

    A table that does not fit `width` cells has no bars, and shorter names.
    """
    # The catalog does not know the window of every model: bars then show shares of what is used.
    window = context.window or max(context.used, 1)
    about = "" if context.is_counted else "about "
    share = (
        f" of {format_count(context.window)} tokens, {context.used * 100 // window} %"
        if context.window
        else " tokens"
    )
    source = (
        "counted by the service at the last request"
        if context.is_counted
        else "estimated from the text"
    )
    lines = [
        f"{context.model}: {about}{format_count(context.used)}{share} ({source})",
        _draw_bar(context.used, window),
        "",
        *_align_context_rows(_list_context_rows(context, window), width),
    ]
    if context.compacts_at:
        tokens_left = max(context.compacts_at - context.used, 0)
        when = f"after {format_count(tokens_left)} more" if tokens_left else "at the next step"
        threshold = format_count(context.compacts_at)
        lines += [
            "",
            f"A summary takes the place of the conversation from {threshold} tokens on: {when}.",
        ]
    if context.prunable:
        lines.append(
            f"Before that, about {format_count(context.prunable)} of old output are left out."
        )
    return lines


class _ContextRow(NamedTuple):
    """A row of a context report. `group`: "" if it is that of the row above."""

    group: str
    name: str
    tokens: str
    bar: str


def _list_context_rows(context: SessionContext, window: int) -> list[_ContextRow]:
    """Return a row for each part of the context, and one for what is free.
    `window`: the tokens of a whole bar.
    """
    rows: list[_ContextRow] = []
    group_above = ""
    for part in sorted(
        context.parts, key=lambda each: (_CONTEXT_GROUPS.index(each.group), -each.tokens)
    ):
        rows.append(
            _ContextRow(
                group=part.group if part.group != group_above else "",
                name=one_line(part.name, MAX_NAME),
                tokens=f"about {format_count(part.tokens)}",
                bar=_draw_bar(part.tokens, window),
            )
        )
        group_above = part.group
    if context.window:
        free = max(context.window - context.used, 0)
        rows.append(_ContextRow("free", "", format_count(free), _draw_bar(free, window)))
    return rows


def _align_context_rows(rows: Sequence[_ContextRow], width: int) -> list[str]:
    """Align the rows; if they do not fit `width` cells, without bars and with shorter names."""
    table = align_table(rows, right_aligned=(2,))
    if _fits(table, width):
        return table
    table_width = max(map(measure_width, align_table([row[:3] for row in rows])))
    longest_name = max(measure_width(row.name) for row in rows)
    # The names get what the other columns leave.
    room = longest_name - max(table_width - width, 0)
    short_rows = [(row.group, one_line(row.name, max(room, 8)), row.tokens) for row in rows]
    return align_table(short_rows, right_aligned=(2,))


def format_permission_report(
    permissions_in_force: PermissionsInForce, max_decisions: int = 10
) -> list[str]:
    """Format the profile, the "always" grants, the rules in their order, and the latest
    `max_decisions` decisions.
    """
    lines = [
        f"profile {permissions_in_force.profile}, agent {one_line(permissions_in_force.agent, MAX_NAME)}",
        "",
        "Always allowed:",
    ]
    lines += [f"  {grant.id}  {format_grant(grant)}" for grant in permissions_in_force.grants] or [
        "  nothing"
    ]
    for number, rules in groupby(permissions_in_force.rules, key=lambda rule: rule.list):
        heading = "Every call must pass these as well" if number else "Rules"
        lines += ["", f"{heading}; the last that matches decides:"]
        lines += align_table(
            [
                (f"  {rule.permission}", one_line(rule.pattern, MAX_NAME), rule.action, rule.origin)
                for rule in rules
            ]
        )
    lines += ["", "Latest decisions:"]
    lines += [
        f"  {format_decision(each)}" for each in permissions_in_force.decisions[-max_decisions:]
    ] or ["  none"]
    return lines


def format_memory_report(notes: Sequence[MemoryNote]) -> list[str]:
    """Format the notes of the project's memory, each with its files, its state and its text."""
    lines: list[str] = []
    for note in notes:
        state = note.problem or (
            f"stale: {note.stale}" if note.stale else "" if note.commit else "without a commit"
        )
        about = f"  about {', '.join(note.about)}" if note.about else ""
        lines += [f"{note.file}{about}", *([f"  {state}"] if state else [])]
        lines += [f"  {line}" for line in note.text.splitlines()] + [""]
    return lines or [
        "No notes yet. /remember TEXT has the model write one to .codeloop/memory, after asking you."
    ]


def format_grant(grant: Grant) -> str:
    """Format an "always" grant: its patterns, its scope, its date."""
    where = grant.place or grant.directory or "its session only"
    return one_line(
        f"{grant.permission} {', '.join(grant.patterns)}  in {where}, since {format_time(grant.time)}",
        2 * MAX_NAME,
    )


def format_decision(decision: Decision) -> str:
    """Format a decision: action, subject and reason."""
    subject = one_line(", ".join(decision.patterns), MAX_NAME)
    origin = one_line(decision.origin, MAX_NAME)
    action = f"{decision.action:5}  {decision.permission}"
    return f"{format_time(decision.time)}  {action}  {subject}  by {decision.by}; {origin}"


def _format_price(cost: float, tokens: Tokens, *, is_priced: bool) -> str:
    """Format a cost; without one, the tokens were free if the model has a price,
    else their price is unknown.
    """
    if cost or not tokens.all:
        return format_cost(cost, tokens)
    return "free" if is_priced else UNKNOWN_PRICE


def _format_tokens(tokens: Tokens) -> tuple[str, str, str, str]:
    """Format the cells of a cost table: input, cached, output, reasoning.
    Cached tokens are part of the input.
    """
    total = tokens.input + tokens.cache.read + tokens.cache.write
    return (
        format_count(total),
        format_count(tokens.cache.read),
        format_count(tokens.output),
        format_count(tokens.reasoning),
    )


def _draw_bar(tokens: int, total: int) -> str:
    """Draw the share of the tokens; a share too small for a cell is drawn as a thin line."""
    cells = round(tokens * BAR_WIDTH / total)
    return "█" * min(cells, BAR_WIDTH) if cells else "▏" if tokens else ""


def _fits(lines: Sequence[str], width: int) -> bool:
    return max(map(measure_width, lines)) <= width


def _stack_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table without columns: each row as its name,
    and below it a line of headings and figures.
    """
    (_, *head), *rest = rows
    lines: list[str] = []
    for name, *cells in rest:
        figures = [
            f"{heading} {cell}"
            for heading, cell in zip(head, cells, strict=True)
            if cell not in {"", "0"}
        ]
        # The last column, the cost, is the most important one.
        lines += [name, f"  {' · '.join(reversed(figures))}"]
    return lines
