"""What appeared while a sandboxed command ran: a person says whether it was theirs, and may stay."""

from collections.abc import Iterable

from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON
from codeloop.tool.file_access import edit_needs, permission_name
from codeloop.tool.tool import ToolContext
from codeloop.workspace.sandbox.blocked import ASK_OUTSIDE
from codeloop.workspace.sandbox.protected_files import SetAside

_REASON = "It appeared while a sandboxed command ran, and decides what runs later. Keep it if it was you who made it."


async def decide_on(set_aside: Iterable[SetAside], ctx: ToolContext) -> list[str]:
    """Ask about each file and put back what may stay; return what became of them, for the model."""
    notes: list[str] = []
    for each in set_aside:
        name = permission_name(ctx.workspace, each.path)
        command = f"keep {name}"
        shown: JSON = {"command": command, "reason": _REASON}
        is_kept = False
        try:
            await ctx.ask(
                Need(permission="sandbox", patterns=(command,), metadata=shown),
                *edit_needs(ctx.workspace, [each.path], shown),
            )
            is_kept = each.give_back()
        except (Denied, Rejected):
            is_kept = False
        if is_kept:
            notes.append(f"{name} appeared while the command ran. The user let it stay.")
        else:
            notes.append(
                f"{each.path} may not appear while commands are sandboxed: it decides what runs later. It was moved to "
                f"{each.moved}. {ASK_OUTSIDE}"
            )
    return notes
