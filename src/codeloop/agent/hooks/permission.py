"""What extensions say about a permission question before a person is asked."""

import msgspec

from codeloop.schema.permission import Action, PermissionRequest
from codeloop.schema.wire import JSON
from codeloop.tool.call_session import AskedHooks

ASK = "permission.ask"


async def verdict_on(hooks: AskedHooks, request: PermissionRequest) -> Action:
    """Ask extensions to decide a question. Raises HookRefused: one of them refuses, in its own words."""
    asked: JSON = msgspec.to_builtins(request)
    asked |= {"type": request.permission, "pattern": request.patterns, "title": ", ".join(request.patterns)}
    if request.tool is not None:
        asked |= {"messageID": request.tool.message_id, "callID": request.tool.call_id}
    status: Action = (await hooks.run(ASK, asked, {"status": "ask"}))["status"]
    return status
