"""`HostAnswerer`: asks the program at stdin and stdout for permissions, for
`--permission-prompt-tool stdio`.

It sends `can_use_tool` requests of the format stream-json.
"""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import DENIED_MESSAGE, Answerer
from codeloop.client.client import Client
from codeloop.kit.jsonc import is_object
from codeloop.schema.api.answers import PERMISSION_REPLY, AnswerPermission
from codeloop.schema.errors import OperationError
from codeloop.schema.permission import NOBODY_MESSAGE, PermissionRequest, Reply
from codeloop.schema.wire import JSON

ARGUMENTS_CHANGED = (
    "The program that was asked changed the arguments, which is not supported: "
    "call it with those instead."
)


class HostAnswerer(Answerer):
    """Answers permission requests by asking the program; questions of the model are refused.

    `write`: sends a line to the program. `find_call`: returns the name and the arguments of a call,
    by its id.
    """

    def __init__(
        self,
        write: Callable[[JSON], None],
        find_call: Callable[[str], tuple[str, JSON] | None],
        *,
        auto: bool,
    ) -> None:
        super().__init__(None, auto=auto)
        self._write = write
        self._find_call = find_call
        self._is_closed = False
        self._waiting: dict[str, asyncio.Future[JSON | None]] = {}

    async def answer(self, client: Client, view: View, request: PermissionRequest) -> None:
        """Answer a permission request as the program decides."""
        if self._auto or self._is_closed:
            await super().answer(client, view, request)
            return
        # Not every request belongs to a call that the program knows.
        call = self._find_call(request.tool.call_id) if request.tool is not None else None
        tool, arguments = call or (request.permission, request.metadata)
        answer = await self._ask(tool, arguments, request)
        reply, message = _read_answer(answer, arguments)
        # The program is gone, so nobody could be asked.
        if answer is None:
            self.refusal = self.refusal or DENIED_MESSAGE
        try:
            await client.call(
                PERMISSION_REPLY,
                AnswerPermission(request_id=request.id, reply=reply, message=message),
            )
        except OperationError as error:
            if error.kind != "PermissionNotFoundError":
                raise

    def deliver_answer(self, response: Any) -> None:
        """Pass a `control_response` of the program to the question that waits for it;
        ignore any other.
        """
        question_id = response.get("request_id") if is_object(response) else None
        waiting = self._waiting.get(question_id) if isinstance(question_id, str) else None
        if waiting is not None and not waiting.done():
            answer = response.get("response")
            is_answer = response.get("subtype") == "success" and is_object(answer)
            waiting.set_result(
                answer if is_answer else {"behavior": "deny", "message": response.get("error")}
            )

    def close(self) -> None:
        """Refuse the questions that wait, and all later ones: the program is gone."""
        self._is_closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(None)

    async def _ask(self, tool: str, arguments: JSON, request: PermissionRequest) -> JSON | None:
        """Ask the program whether a call may run; return its answer, None if it is gone."""
        question_id = str(uuid4())
        waiting = self._waiting[question_id] = asyncio.get_running_loop().create_future()
        question: JSON = {
            "subtype": "can_use_tool",
            "tool_name": tool,
            "input": arguments,
            "permission_suggestions": [],
            **({"tool_use_id": request.tool.call_id} if request.tool is not None else {}),
        }
        self._write({"type": "control_request", "request_id": question_id, "request": question})
        self.asked_ids.add(request.id)
        try:
            return await waiting
        # The request was answered by another client, or its turn has ended.
        except asyncio.CancelledError:
            self._write({"type": "control_cancel_request", "request_id": question_id})
            raise
        finally:
            self.asked_ids.discard(request.id)
            del self._waiting[question_id]


def _read_answer(answer: JSON | None, arguments: JSON) -> tuple[Reply, str | None]:
    """Return the reply to a permission request, and words for the model.
    `answer`: None if the program is gone.
    """
    if answer is None:
        return "reject", NOBODY_MESSAGE
    if answer.get("behavior") != "allow":
        # A refusal without words ends the turn.
        return "reject", None if answer.get("interrupt") else str(
            answer.get("message") or NOBODY_MESSAGE
        )
    if answer.get("updatedInput", arguments) != arguments:
        return "reject", ARGUMENTS_CHANGED
    return "once", None
