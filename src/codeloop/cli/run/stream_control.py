"""Control messages of `stream-json` input: the host program's requests,
and its answers to permission questions.

The host is the program that started `codeloop` and writes to its stdin.
"""

from typing import Any

from codeloop.cli.option_values import Options
from codeloop.cli.output.stream_json.stream_json_view import StreamJsonView
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.questions.host_answerer import HostAnswerer
from codeloop.cli.run.turn import RunTurn
from codeloop.cli.target.selection import parse_model, set_profile
from codeloop.client.client import Client
from codeloop.kit.jsonc import is_object
from codeloop.schema.api.agents import COMMAND_LIST
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import Profile
from codeloop.schema.wire import JSON, replace

# The permission modes of the format, with the permission profiles that they stand for.
PERMISSION_MODES: dict[str, Profile] = {
    "default": "ask",
    "acceptEdits": "auto",
    "plan": "read-only",
    "bypassPermissions": "yolo",
}
INTERRUPTED_BY_HOST = "The program that reads this has interrupted the turn."


class StreamControls:
    """Handles the control messages of one run. The run sets `client` and `session`
    before it reads the first line.

    `options`: the options of the next prompt. `turn`: the turn that runs, if any; `is_interrupted`:
    whether the host has asked to end it.
    """

    def __init__(self, view: StreamJsonView, answerer: Answerer, options: Options) -> None:
        self.options = options
        self.client: Client | None = None
        self.session: Session | None = None
        self.turn: RunTurn | None = None
        self.is_interrupted = False
        self._view = view
        self._host = answerer if isinstance(answerer, HostAnswerer) else None

    def require_session(self) -> tuple[Client, Session]:
        """Return the client and the session. Raises UsageProblem before the session is open."""
        if self.client is None or self.session is None:
            raise UsageProblem("The session is not open yet.")
        return self.client, self.session

    def refuse_questions(self) -> None:
        """Have open and later permission questions refused: the host has closed
        stdin and can't answer.
        """
        if self._host is not None:
            self._host.close()

    async def handle_message(self, message: JSON) -> None:
        """Carry out a request of the host and write the response,
        or pass on its answer to a permission question.

        Messages of other types are ignored.
        """
        if message.get("type") == "control_response" and self._host is not None:
            self._host.deliver_answer(message.get("response"))
        if message.get("type") != "control_request":
            return
        request_id = message.get("request_id")
        try:
            response: JSON = {
                "subtype": "success",
                "response": await self._carry_out(message.get("request")),
            }
        except CodeloopError as error:
            response = {"subtype": "error", "error": str(error)}
        self._view.write_line(
            {"type": "control_response", "response": {**response, "request_id": request_id}}
        )

    async def _carry_out(self, request: Any) -> JSON:
        """Carry out a request; return the response's data.
        Raises CodeloopError when the request is refused.
        """
        client, session = self.require_session()
        if not is_object(request):
            raise UsageProblem("`request` is an object with a `subtype`.")
        match request:
            # A host that relies on its hooks must not believe that they are called.
            case {"subtype": "initialize"} if request.get("hooks"):
                raise UsageProblem(
                    "Hooks of the program are not supported. Write them into the configuration."
                )
            case {"subtype": "initialize"}:
                commands = await client.call(COMMAND_LIST, NoArguments())
                rows = [
                    {"name": row.name, "description": row.description or "", "argumentHint": ""}
                    for row in commands
                ]
                styles: JSON = {"output_style": "default", "available_output_styles": ["default"]}
                return {"commands": rows, "models": [], **styles}
            case {"subtype": "interrupt"}:
                if self.turn is not None:
                    self.is_interrupted = True
                    self.turn.request_end("interrupted", INTERRUPTED_BY_HOST)
                return {}
            case {"subtype": "set_model", "model": str() | None as model}:
                # Raises for a name that is not of the form PROVIDER/MODEL.
                parse_model(model)
                self.options = replace(self.options, model=model)
                return {}
            case {"subtype": "set_permission_mode", "mode": str(mode)} if mode in PERMISSION_MODES:
                self.session = await set_profile(client, session, PERMISSION_MODES[mode])
                return {"mode": mode}
            case {"subtype": "set_permission_mode"}:
                raise UsageProblem(f"`mode` is one of {', '.join(PERMISSION_MODES)}.")
            case _:
                raise UsageProblem(f"There is no request {request.get('subtype')!r}.")
