"""Formats reports as lines of text: cost, context, permissions, memory."""

from collections.abc import Sequence

from codeloop.client.numbers import format_cost, format_count, format_time, width_of
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.project import MemoryNote
from codeloop.schema.api.session_reports import PermissionsInForce, SessionContext, SessionCost
from codeloop.schema.message import Tokens
from codeloop.schema.permission import Decision, Grant

WIDTH = 60
"""Characters of a name."""
WIDE = 1_000
"""Cells in which everything fits."""
BAR = 30
"""Cells of the bar that is the whole window."""
UNKNOWN = "price unknown"
_HEAD = ("", "steps", "input", "cached", "output", "reasoning", "cost")


def cost_lines(cost: SessionCost, width: int = WIDE) -> list[str]:
    """Format the tokens and cost of a session: by model, by subagent, and the total.

    As a table where it fits `width` cells, else each name with its figures below it.
    """
    if not cost.tokens.all and not cost.cost:
        return ["Nothing was used yet."]
    rows: list[tuple[str, ...]] = [_HEAD]
    is_known = all(model.is_priced for model in cost.models)
    for model in cost.models:
        if not model.tokens.all and not model.cost:  # refused, or killed before anything was counted
            continue
        money = _money(model.cost, model.tokens, is_priced=model.is_priced)
        rows.append((one_line(model.model, WIDTH), str(model.steps), *_tokens(model.tokens), money))
    for each in cost.subagents:
        name = one_line(f"subagent {each.agent}: {each.title}", WIDTH)
        rows.append((name, "", *_tokens(each.tokens), _money(each.cost, each.tokens, is_priced=is_known)))
    total = _money(cost.cost, cost.tokens, is_priced=is_known)
    rows.append(("total, with subagents", "", *_tokens(cost.tokens), total))
    notes = [] if is_known else ["No price is known of some models: set cost of the model in the configuration."]
    notes += ["~: estimated, as no service has counted it."] if cost.tokens.estimated else []
    table = _table(rows, right=range(1, len(_HEAD)))
    return [*(table if _fits(table, width) else _stack(rows)), *notes]


def context_lines(context: SessionContext, width: int = WIDE) -> list[str]:
    """Format the use of a session's context window: a row and a bar for each part.

    A table that does not fit `width` cells has no bars, and shorter names.
    """
    window = context.window or max(context.used, 1)
    about = "" if context.is_counted else "about "
    of = f" of {format_count(context.window)} tokens, {context.used * 100 // window} %" if context.window else " tokens"
    source = "counted by the service at the last request" if context.is_counted else "estimated from the text"
    lines = [f"{context.model}: {about}{format_count(context.used)}{of} ({source})", _bar(context.used, window), ""]
    rows: list[tuple[str, ...]] = []
    group = ""
    for part in sorted(context.parts, key=lambda each: (_GROUPS.index(each.group), -each.tokens)):
        group_name = part.group if part.group != group else ""
        group = part.group
        rows.append(
            (group_name, one_line(part.name, WIDTH), f"about {format_count(part.tokens)}", _bar(part.tokens, window))
        )
    if context.window:
        free = max(context.window - context.used, 0)
        rows.append(("free", "", format_count(free), _bar(free, window)))
    table = _table(rows, right=(2,))
    if not _fits(table, width):
        short_rows = [row[:3] for row in rows]
        room = max(width_of(row[1]) for row in short_rows) - max(*map(width_of, _table(short_rows)), width) + width
        table = _table(
            [(group, one_line(name, max(room, 8)), tokens) for group, name, tokens in short_rows], right=(2,)
        )
    lines += table
    if context.compacts_at:
        tokens_left = max(context.compacts_at - context.used, 0)
        lines += [
            "",
            f"A summary takes the place of the conversation from {format_count(context.compacts_at)} tokens on",
        ]
        lines[-1] += f": after {format_count(tokens_left)} more." if tokens_left else ": at the next step."
    if context.prunable:
        lines.append(f"Before that, about {format_count(context.prunable)} of old output are left out.")
    return lines


def permission_lines(permissions_in_force: PermissionsInForce, decisions: int = 10) -> list[str]:
    """Return the profile, what was always allowed, the rules in their order, and the latest decisions."""
    lines = [
        f"profile {permissions_in_force.profile}, agent {one_line(permissions_in_force.agent, WIDTH)}",
        "",
        "Always allowed:",
    ]
    lines += [f"  {grant.id}  {grant_text(grant)}" for grant in permissions_in_force.grants] or ["  nothing"]
    lines += ["", "Rules; the last that matches decides:"]
    rows = [
        (f"  {rule.permission}", one_line(rule.pattern, WIDTH), rule.action, rule.origin)
        for rule in permissions_in_force.rules
    ]
    lines += [one_line(line, 3 * WIDTH) if line[:1].strip() else line for line in _table(rows)] or ["  none"]
    lines += ["", "Latest decisions:"]
    lines += [f"  {decision_text(each)}" for each in permissions_in_force.decisions[-decisions:]] or ["  none"]
    return lines


def memory_lines(notes: Sequence[MemoryNote]) -> list[str]:
    """Return the notes of the project's memory: each with its files, whether it is stale, and its text."""
    lines: list[str] = []
    for note in notes:
        state = note.problem or (f"stale: {note.stale}" if note.stale else "" if note.commit else "without a commit")
        about = f"  about {', '.join(note.about)}" if note.about else ""
        lines += [f"{note.file}{about}", *([f"  {state}"] if state else [])]
        lines += [f"  {line}" for line in note.text.splitlines()] + [""]
    return lines or ["No notes yet. /remember TEXT has the model write one to .codeloop/memory, after asking you."]


def grant_text(grant: Grant) -> str:
    """Format an "always" grant: its patterns, its scope, its date."""
    where = grant.place or grant.directory or "its session only"
    return one_line(
        f"{grant.permission} {', '.join(grant.patterns)}  in {where}, since {format_time(grant.time)}", 2 * WIDTH
    )


def decision_text(decision: Decision) -> str:
    """Format a decision: action, subject and reason."""
    what = one_line(", ".join(decision.patterns), WIDTH)
    origin = one_line(decision.origin, WIDTH)
    return (
        f"{format_time(decision.time)}  {decision.action:5}  {decision.permission}  {what}  by {decision.by}; {origin}"
    )


_GROUPS = ("system prompt", "instructions", "tools", "MCP", "conversation")


def _money(cost: float, tokens: Tokens, *, is_priced: bool) -> str:
    """Return dollars, or that nothing is asked for the tokens, or that it is unknown what is."""
    if cost or not tokens.all:
        return format_cost(cost, tokens)
    return "free" if is_priced else UNKNOWN


def _tokens(tokens: Tokens) -> tuple[str, str, str, str]:
    total = tokens.input + tokens.cache.read + tokens.cache.write
    return (
        format_count(total),
        format_count(tokens.cache.read),
        format_count(tokens.output),
        format_count(tokens.reasoning),
    )


def _bar(tokens: int, total: int) -> str:
    cells = round(tokens * BAR / total)
    return "█" * min(cells, BAR) if cells else "▏" if tokens else ""


def _fits(lines: Sequence[str], width: int) -> bool:
    return max(map(width_of, lines)) <= width


def _stack(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as names, each with a line of its cells below it: the head, and the figure."""
    (_, *head), *rest = rows
    lines: list[str] = []
    for name, *cells in rest:
        figures = [f"{what} {cell}" for what, cell in zip(head, cells, strict=True) if cell not in {"", "0"}]
        lines += [name, f"  {' · '.join(reversed(figures))}"]
    return lines


def _table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return rows as aligned lines."""
    if not rows:
        return []
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells = [
            " " * (width - width_of(cell)) + cell if at in right else cell + " " * (width - width_of(cell))
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
