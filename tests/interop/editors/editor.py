"""An editor made with the protocol's own package, which checks every message: prompts, allows,
prints what it saw.

python editor.py PROMPT DIRECTORY COMMAND...: prints JSON with `stop`, `kinds` of updates, `titles`
of what was asked, `text` of the answer, `loaded` texts of the session when it is opened again,
and `listed` ids.
"""

import asyncio
import json
import os
import sys
from importlib import import_module
from typing import Any

acp: Any = import_module("acp")  # only in the environment of this script
schema: Any = import_module("acp.schema")


class Editor(acp.Client):
    """Allows everything once."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.titles: list[str] = []

    async def request_permission(
        self, options: Any, session_id: str, tool_call: Any, **_: Any
    ) -> Any:
        self.titles.append(tool_call.title)
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(exclude_none=True, by_alias=True))

    def texts(self) -> str:
        found = (each for each in self.updates if each["sessionUpdate"] == "agent_message_chunk")
        return "".join(each["content"]["text"] for each in found)


async def main(prompt: str, directory: str, *command: str) -> dict[str, Any]:
    editor = Editor()
    async with acp.spawn_agent_process(editor, *command, cwd="/", env=dict(os.environ)) as (
        agent,
        _,
    ):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd=directory, mcp_servers=[])
        done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])
        seen = {"stop": done.stop_reason, "text": editor.texts(), "titles": editor.titles}
        seen["kinds"] = sorted({each["sessionUpdate"] for each in editor.updates})
        listed = await agent.list_sessions(cwd=directory)
        seen["listed"] = [each.session_id == session.session_id for each in listed.sessions]
        editor.updates.clear()
        await agent.load_session(cwd=directory, session_id=session.session_id, mcp_servers=[])
        return {**seen, "loaded": editor.texts()}


print(json.dumps(asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 120))))
