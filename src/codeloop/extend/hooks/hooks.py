"""Handlers of extensions, asked one after the other at points of a session: order, deadline, failures, refusals."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from codeloop.extend.hooks.shapes import check_output
from codeloop.extend.hooks.timings import HookTimings, Outcome
from codeloop.schema.bounds.extension import HOOK, HOOK_ANSWERS
from codeloop.schema.errors import HookRefused
from codeloop.schema.wire import JSON

REFUSING = frozenset(("tool.execute.before", "command.execute.before", "permission.ask", "chat.message"))
"""Hooks in which an error that the extension's own code raises is its author's refusal of what is about to happen."""
_MOST_SAID = 1_000


class HookFailed(Exception):
    """A handler could not do its work: its process is gone, or it answered what makes no sense. Nobody meant to refuse.

    The message says what happened.
    """


class HookLate(HookFailed):
    """A handler missed its deadline."""


class ExtensionRaised(Exception):
    """The code of an extension raised an exception: its text. `name`: the exception's; `trace`: where."""

    def __init__(self, message: str, name: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.name = name
        self.trace = trace


class Handler(Protocol):
    """What one extension does at the hooks that it names."""

    @property
    def label(self) -> str:
        """Which extension it is, for messages."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The hooks that it wants to be asked at."""
        ...

    @property
    def policy(self) -> frozenset[str]:
        """Those at which nothing happens without its answer."""
        ...

    @property
    def is_project(self) -> bool:
        """It came with the project; those of the person are asked before it."""
        ...

    @property
    def seconds(self) -> float | None:
        """Its deadline; None: that of all hooks."""
        ...

    async def call(self, name: str, given: JSON, output: JSON, /) -> JSON:
        """Return the new `output`: whole, or only the values that change.

        Raises HookFailed when the handler could not do its work, HookRefused when it refuses what is about to happen.
        Any other exception counts as raised by the extension's own code: in the hooks of REFUSING, that refuses, too.
        """
        ...


class HookRow(Struct, frozen=True):
    """One handler, for lists."""

    label: str
    names: tuple[str, ...]
    policy: tuple[str, ...]
    is_project: bool
    seconds: float


class Hooks:
    """The handlers of a project: the person's before the project's, each sees what the one before it made.

    `tell` is given a line for the person about each handler that failed, once for each cause and session.
    `seconds`: the deadline of each handler that has none of its own.
    """

    def __init__(
        self,
        handlers: Iterable[Handler] = (),
        tell: Callable[[str], None] = lambda _: None,
        seconds: float | None = None,
    ) -> None:
        self._tell = tell
        self._seconds = HOOK.seconds if seconds is None else seconds
        self.failures = 0
        """How often a handler was passed over."""
        self.timings: HookTimings | None = None
        """Counts the calls of handlers, if somebody wants to know."""
        self._said: dict[tuple[str, str, str, str], None] = {}
        self.take(handlers)

    def take(self, handlers: Iterable[Handler]) -> None:
        """Ask these handlers from now on, in this order."""
        self._handlers = tuple(sorted(handlers, key=lambda handler: handler.is_project))
        self._answers: dict[tuple[str, bytes], JSON] = {}
        self._names = frozenset(name for handler in self._handlers for name in handler.names)

    def wants(self, name: str) -> bool:
        """Return whether any handler wants to be asked at a hook."""
        return name in self._names

    def rows(self) -> tuple[HookRow, ...]:
        """Return the handlers in their order."""
        return tuple(
            HookRow(
                each.label,
                tuple(sorted(each.names)),
                tuple(sorted(each.policy)),
                each.is_project,
                self._deadline(each),
            )
            for each in self._handlers
        )

    async def run(self, name: str, given: JSON, output: JSON) -> JSON:
        """Pass `output`, whose values have the types of `extend.hooks.shapes`, through the handlers of a hook.

        A handler that fails is named once and passed over. Raises HookRefused: an extension refuses what is about to
        happen, or one that decides about it could not.
        """
        for handler in self._handlers:
            if name in handler.names:
                output = await self._ask(handler, name, given, output)
        return output

    async def once(self, name: str, given: JSON, output: JSON) -> JSON:
        """As `run`, but the same is asked only once, until there are other handlers."""
        key = (name, msgspec.json.encode((given, output)))
        answers = self._answers  # `take` makes others
        if key not in answers:
            answer = await self.run(name, given, output)
            if len(answers) >= HOOK_ANSWERS.value:
                answers.clear()
            answers.setdefault(key, answer)  # somebody else may have asked meanwhile: theirs was sent already
        return answers[key]

    async def _ask(self, handler: Handler, name: str, given: JSON, output: JSON) -> JSON:
        began = time.monotonic()
        outcome: Outcome | None = None
        try:
            answer = await self._answer(handler, name, given, output)
            merged: JSON = msgspec.json.decode(msgspec.json.encode({**output, **answer}))
            merged = check_output(name, merged)
            outcome = "answered"
        except HookRefused:
            outcome = "answered"
            raise
        except HookFailed as error:
            outcome = "late" if isinstance(error, HookLate) else "failed"
            self._pass_over(handler, name, given, str(error))
            return output
        except (msgspec.MsgspecError, TypeError, RecursionError, OverflowError) as error:
            outcome = "failed"
            self._pass_over(handler, name, given, f"its answer is invalid: {error}")
            return output
        finally:
            if self.timings is not None and outcome is not None:
                self.timings.note(handler.label, name, (time.monotonic() - began) * 1000, outcome)
        return merged

    async def _answer(self, handler: Handler, name: str, given: JSON, output: JSON) -> JSON:
        """Return a handler's answer. It works on copies, so that what it does late or halfway counts for nothing."""
        seconds = self._deadline(handler)
        working = asyncio.ensure_future(handler.call(name, _copy(given), _copy(output)))
        working.add_done_callback(retrieve_exception)
        try:
            done, _ = await asyncio.wait([working], timeout=seconds)
        finally:
            working.cancel()
        if not done:
            raise HookLate(f"it did not answer in {seconds:g} s")
        if working.cancelled():
            raise HookFailed("it was ended while it worked")
        error = working.exception()
        if isinstance(error, HookFailed):
            raise error
        if error is not None:
            said = str(error) or type(error).__name__
            if name in REFUSING or isinstance(error, HookRefused):
                raise HookRefused(
                    f"Refused by {handler.label}: {said}", ends=isinstance(error, HookRefused) and error.ends
                )
            kind = error.name if isinstance(error, ExtensionRaised) else type(error).__name__
            raise HookFailed(f"it raised {kind}: {said}")
        return working.result()

    def _deadline(self, handler: Handler) -> float:
        return self._seconds if handler.seconds is None else handler.seconds

    def _pass_over(self, handler: Handler, name: str, given: JSON, cause: str) -> None:
        """Pass a handler over, and say so; refuse where nothing happens without its answer."""
        if name in handler.policy:
            raise HookRefused(f"{handler.label} decides about {name}, and could not: {cause}. So this was not done.")
        self.failures += 1
        key = (str(given.get("sessionID", "")), handler.label, name, cause)
        if key not in self._said:
            self._said[key] = None
            if len(self._said) > _MOST_SAID:
                del self._said[next(iter(self._said))]
            self._tell(f"{handler.label} failed at {name} and was passed over: {cause}.")


def _copy(value: JSON) -> JSON:
    return msgspec.json.decode(msgspec.json.encode(value))


def retrieve_exception(done: "asyncio.Future[Any]") -> None:
    """Look at an exception that nobody waits for any more, or asyncio complains of it."""
    if not done.cancelled():
        done.exception()
