"""What a server keeps in memory for clients of version 2: forms and questions of clients,
prompts that wait for the end of a turn, sign-ins, and commands that run on their own.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from msgspec import Struct, field

from codeloop.schema.api.session_inputs import Prompt
from codeloop.schema.wire import JSON

Publish = Callable[[str, JSON, str | None], None]
"""Sends an event to those who follow: its type, its data, its directory."""


class ClientForm(Struct):
    """A form that a client made. `info`: as clients see it; `state`: how it was settled."""

    info: JSON
    directory: str
    state: JSON


class ClientPermission(Struct, frozen=True):
    """A question for permission that a client asks, as clients see it."""

    request: JSON
    directory: str


class WaitingPrompt(Struct):
    """A prompt that waits until the turn of its session is over. `time`: ms since the epoch."""

    prompt: Prompt
    item: JSON
    delivery: Literal["steer", "queue"] = "queue"


class SignIn(Struct):
    """A sign-in that was begun; times in ms since the epoch."""

    integration_id: str
    method: int
    created: int
    expires: int
    status: JSON
    task: "asyncio.Task[None] | None" = None


class KeptState(Struct):
    """See the module. `publish`: sends an event to the followers of version 2."""

    publish: Publish
    forms: dict[str, ClientForm] = field(default_factory=dict[str, ClientForm])
    permissions: dict[str, ClientPermission] = field(default_factory=dict[str, ClientPermission])
    waiting: dict[str, list[WaitingPrompt]] = field(default_factory=dict[str, list[WaitingPrompt]])
    """The prompts that wait, by session; a session is in it until the last one is sent."""
    announced: deque[str] = field(default_factory=lambda: deque[str](maxlen=1_000))
    """The ids of the last prompts that followers were told of before they were stored."""
    sign_ins: dict[str, SignIn] = field(default_factory=dict[str, SignIn])
    shells: dict[str, Any] = field(default_factory=dict[str, Any])
    """The commands of `shells`, by their ids."""
    tasks: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    def run(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something that no answer waits for."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.discard(task)
        # What failed is stored in its session; a task that nobody asks would be reported.
        if not task.cancelled():
            task.exception()
