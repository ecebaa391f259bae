"""Commands that show reports on a session: its status, context window, cost and permissions,
and the memory.
"""

from collections.abc import Callable, Sequence

from rich.segment import Segment

from codeloop.client.formatting import describe_spending, format_cost
from codeloop.client.slash.reports import (
    format_context_report,
    format_cost_report,
    format_decision,
    format_grant,
    format_memory_report,
)
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.answers import PERMISSION_REVOKE, PERMISSION_RULES
from codeloop.schema.api.project import MEMORY_LIST
from codeloop.schema.api.session_reports import SESSION_CONTEXT, SESSION_COST
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.message import NO_TOKENS, format_model_ref
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionQuery, RevokeGrant
from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.reading_screen import ReadingScreen
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import wrap_line
from codeloop.tui.ui import Ui

MAX_TITLE = 80
"""Cells of the session's title in the status."""
# The last rule that matches decides, so the rules are listed from the last to the first.
RULES_GROUP = "Rules: the first that matches, from above, decides"
ADDITIONAL_RULES_GROUP = "Every call must pass these as well"


async def show_context(ui: Ui, _words: str) -> None:
    """Show the parts of the model's context window."""
    report = await ui.client.call(SESSION_CONTEXT, SessionId(session_id=ui.session.id))
    await _show_lines(ui, "Context", lambda width: format_context_report(report, width))


async def show_cost(ui: Ui, _words: str) -> None:
    """Show the tokens and the cost of the session and its subagents."""
    report = await ui.client.call(SESSION_COST, SessionId(session_id=ui.session.id))
    await _show_lines(ui, "Cost", lambda width: format_cost_report(report, width))


async def show_memory(ui: Ui, _words: str) -> None:
    """Show the notes of the project's memory, and which of them are stale."""
    notes = await ui.client.call(MEMORY_LIST, NoArguments())
    await _show_lines(ui, "Memory", lambda _: format_memory_report(notes))


async def show_permissions(ui: Ui, _words: str) -> None:
    """Show the effective rules, the revocable "always" grants, and recent decisions."""
    client, session = ui.client, ui.tab.session
    query = PermissionQuery(
        session_id=session.id if session is not None else None, agent=ui.choices.find_agent(ui.tab)
    )

    grant_ids: set[str] = set()

    async def list_permissions() -> Sequence[Pick[str]]:
        report = await client.call(PERMISSION_RULES, query)
        grant_ids.update(grant.id for grant in report.grants)
        always = [
            Pick(grant.id, format_grant(grant), group="Always allowed") for grant in report.grants
        ]
        none = (
            []
            if always
            else [
                Pick(
                    "none", "nothing", group="Always allowed", problem="Nothing is always allowed."
                )
            ]
        )
        rules = [
            Pick(
                f"rule {index}",
                f"{rule.action:5} {rule.permission} {rule.pattern}",
                detail=rule.origin,
                group=ADDITIONAL_RULES_GROUP if rule.list else RULES_GROUP,
            )
            for index, rule in reversed([*enumerate(report.rules)])
        ]
        decisions = [
            Pick(f"decision {index}", format_decision(each), group="Latest decisions")
            for index, each in reversed([*enumerate(report.decisions)])
        ]
        return [
            *always,
            *none,
            *decisions,
            *sorted(rules, key=lambda pick: pick.group == ADDITIONAL_RULES_GROUP),
        ]

    async def revoke(value: str | None) -> bool:
        if value is None or value not in grant_ids:
            ui.notify(
                "Only what is always allowed can be revoked; rules are changed in the configuration."
            )
            return False
        return await client.call(PERMISSION_REVOKE, RevokeGrant(grant_id=value))

    source = PickSource(
        title=f"Permissions, profile {ui.choices.get_profile(ui.tab) or 'auto'}",
        load=list_permissions,
        actions=(PickAction("ctrl+d", "revoke", revoke),),
        choose_label="close",
    )
    await show_dialog(ui, Picker(source, lambda: ui.appearance.styles))


async def _show_lines(ui: Ui, title: str, format_lines: Callable[[int], Sequence[str]]) -> None:
    """Show a text on the whole screen. `format_lines` returns its lines for a width in cells."""

    def draw_rows(width: int) -> list[Row]:
        style = ui.appearance.styles.of("text")
        return [
            row
            for line in format_lines(width)
            for row in wrap_line([Segment(escape_controls(line), style)], width)
        ]

    await show_dialog(ui, ReadingScreen(title, draw_rows, lambda: ui.appearance.styles))


async def show_status(ui: Ui, _words: str) -> None:
    """Show where the session works, what it has cost, and its agent, model, theme and profile."""
    session, model = ui.tab.session, ui.choices.resolve_model(ui.tab)
    lines = [ui.launch.server, session.directory if session else ui.launch.directory]
    if session is not None:
        tokens = session.tokens or NO_TOKENS
        lines.append(f"{session.id}  {one_line(session.title, MAX_TITLE)}")
        lines.append(" · ".join(describe_spending(tokens, session.cost or 0.0)) or format_cost(0.0))
    name = format_model_ref(model) if model is not None else "none yet (/connect)"
    lines.append(
        f"agent {ui.choices.find_agent(ui.tab) or 'as configured'}, model {name}, theme {ui.appearance.theme_name}"
    )
    if profile := ui.choices.get_profile(ui.tab):
        lines.append(f"permission profile {profile} (/profile changes it)")
    ui.say("\n".join(filter(None, lines)))
