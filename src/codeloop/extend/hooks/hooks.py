"""Runs the hooks of a project: calls their handlers in order, with deadlines,
failures and refusals.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from codeloop.extend.hooks.answer_filter import keep_restrictions
from codeloop.extend.hooks.output_types import check_output, keep_valid
from codeloop.extend.hooks.timings import HookTimings, Outcome
from codeloop.schema.bounds.extension import HOOK_ANSWER_TIME, HOOK_ANSWERS
from codeloop.schema.errors import HookRefused
from codeloop.schema.wire import JSON

REFUSAL_HOOKS = frozenset(
    ("tool.execute.before", "command.execute.before", "permission.ask", "chat.message")
)
"""Hooks in which an exception raised by the extension's own code counts as a refusal."""
# What was reported is remembered, so that each is reported once;
# beyond this number the oldest is forgotten.
_MAX_REPORTED = 1_000
_WITHHELD = {
    "permission.ask": "its `allow` does not count, you are asked: what loads files of the project can only restrict.",
    "tool.execute.before": "its `allow` does not count, your rules decide: what loads files of the project can only "
    "restrict.",
    "chat.message": "the agent and the tools of a prompt are not its choice, they stay as they were.",
}
"""By hook: the message to the user when a handler that may only restrict
would have permitted more.
"""


class HookFailed(Exception):
    """A handler failed: its process is gone, or its answer is invalid.
    This is not a refusal of the action.
    """


class HookTimedOut(HookFailed):
    """A handler missed its deadline."""


class ExtensionRaised(Exception):
    """An extension's code raised an exception. `name`: the exception's class;
    `trace`: its traceback.
    """

    def __init__(self, message: str, name: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.name = name
        self.trace = trace


class HookHandler(Protocol):
    """A handler of hooks: an extension, or a row of the configuration's `hooks`."""

    @property
    def label(self) -> str:
        """Its name in messages: the extension's, or what the row runs."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The hooks that it handles."""
        ...

    @property
    def policy(self) -> frozenset[str]:
        """The hooks that are refused without its answer."""
        ...

    @property
    def is_project(self) -> bool:
        """Whether it belongs to the project; the user's handlers run before it."""
        ...

    @property
    def may_allow(self) -> bool:
        """Whether it may permit what would be asked; otherwise it can only restrict
        (see `keep_restrictions`).
        """
        ...

    @property
    def seconds(self) -> float | None:
        """Its deadline; None: that of all hooks."""
        ...

    async def call(self, name: str, payload: JSON, output: JSON, /) -> JSON:
        """Return the new `output`: whole, or only the values that change.

        Raises HookFailed when the handler failed, HookRefused when it refuses the action.
        Any other exception counts as raised by the extension's code,
        which in one of REFUSAL_HOOKS is a refusal, too.
        """
        ...


class Hooks:
    """The handlers of a project: the user's before the project's;
    each sees the output of the one before.

    `tell` gets a line for the user about each failed handler, once for each cause and session.
    `seconds`: the deadline of each handler that has none of its own.
    """

    def __init__(
        self,
        handlers: Iterable[HookHandler] = (),
        tell: Callable[[str], None] = lambda _: None,
        seconds: float | None = None,
    ) -> None:
        self._tell = tell
        self.seconds = HOOK_ANSWER_TIME.seconds if seconds is None else seconds
        self.failures = 0
        """The number of times that a handler was skipped after a failure."""
        self.timings: HookTimings | None = None
        """Counts the calls of handlers, if set."""
        self._reported: dict[tuple[str, ...], None] = {}
        self.set_handlers(handlers)

    def set_handlers(self, handlers: Iterable[HookHandler]) -> None:
        """Replace the handlers, in this order."""
        # Sorting is stable: within the user's and the project's handlers the given order stays.
        self._handlers = tuple(sorted(handlers, key=lambda handler: handler.is_project))
        self._answers: dict[tuple[str, bytes], JSON] = {}
        self._names = frozenset(name for handler in self._handlers for name in handler.names)

    def has_handler(self, name: str) -> bool:
        """Return whether any handler has a hook of this name."""
        return name in self._names

    async def run(self, name: str, payload: JSON, output: JSON) -> JSON:
        """Pass `output` (see `output_types.py`) through the handlers of a hook,
        and return what they have made of it.

        A handler that fails is reported once and skipped. Raises HookRefused if a handler refuses
        the action, or if a policy that decides about it failed.
        """
        for handler in self._handlers:
            if name in handler.names:
                output = await self._ask(handler, name, payload, output)
        return output

    async def run_cached(self, name: str, payload: JSON, output: JSON) -> JSON:
        """Like `run`, but cached by its arguments until the handlers change."""
        key = (name, msgspec.json.encode((payload, output)))
        # Kept in a local variable: while this waits,
        # `set_handlers` may put another dictionary in place.
        answers = self._answers
        if key not in answers:
            answer = await self.run(name, payload, output)
            if len(answers) >= HOOK_ANSWERS.value:
                answers.clear()
            # A concurrent caller may have asked meanwhile;
            # its answer was used already, so all keep to that one.
            answers.setdefault(key, answer)
        return answers[key]

    async def _ask(self, handler: HookHandler, name: str, payload: JSON, output: JSON) -> JSON:
        """Return the checked output of a handler, or `output` itself where the handler
        failed and is skipped.
        """
        began = time.monotonic()
        outcome: Outcome | None = None
        try:
            answer = await self._call_handler(handler, name, payload, output)
            # Through JSON, so that a handler in this process can't pass on other objects
            # than a program could.
            full_answer: JSON = msgspec.json.decode(msgspec.json.encode({**output, **answer}))
            if name in handler.policy:
                full_answer = check_output(name, full_answer)
            else:
                full_answer, problems = keep_valid(name, full_answer, output)
                for problem in problems:
                    text = f"{handler.label}: a part of its answer at {name} is left out: {problem}"
                    self._tell_once((handler.label, name, problem), text)
            if not handler.may_allow:
                full_answer = self._keep_restrictions(handler, name, output, full_answer)
            outcome = "answered"
        except HookRefused:
            outcome = "answered"
            raise
        except HookFailed as error:
            outcome = "late" if isinstance(error, HookTimedOut) else "failed"
            self._skip_or_refuse(handler, name, payload, str(error).rstrip("."))
            return output
        except (msgspec.MsgspecError, TypeError, RecursionError, OverflowError) as error:
            outcome = "failed"
            self._skip_or_refuse(handler, name, payload, f"its answer is invalid: {error}")
            return output
        finally:
            if self.timings is not None and outcome is not None:
                self.timings.record(handler.label, name, (time.monotonic() - began) * 1000, outcome)
        return full_answer

    def _keep_restrictions(
        self, handler: HookHandler, name: str, output: JSON, answer: JSON
    ) -> JSON:
        """Return an answer without what would permit more,
        and report once that this does not count.
        """
        kept = keep_restrictions(name, output, answer)
        if kept != answer:
            self._tell_once((handler.label, name), f"{handler.label}: {_WITHHELD[name]}")
        return kept

    async def _call_handler(
        self, handler: HookHandler, name: str, payload: JSON, output: JSON
    ) -> JSON:
        """Return a handler's answer. It works on copies,
        so that late or partial changes have no effect.
        """
        seconds = self.seconds if handler.seconds is None else handler.seconds
        task = asyncio.ensure_future(handler.call(name, _copy(payload), _copy(output)))
        # A handler that is late may still raise after nobody waits for it.
        task.add_done_callback(retrieve_exception)
        try:
            # Not `wait_for`, which waits until a handler that ignores its cancellation has ended.
            done, _ = await asyncio.wait([task], timeout=seconds)
        finally:
            task.cancel()
        if not done:
            raise HookTimedOut(f"it did not answer in {seconds:g} s")
        if task.cancelled():
            raise HookFailed("it was ended while it worked")
        error = task.exception()
        if isinstance(error, HookFailed):
            raise error
        if error is not None:
            message = str(error) or type(error).__name__
            # These hooks judge an action, and code refuses one by raising an exception.
            if name in REFUSAL_HOOKS or isinstance(error, HookRefused):
                ends_turn = isinstance(error, HookRefused) and error.ends
                raise HookRefused(f"Refused by {handler.label}: {message}", ends=ends_turn)
            kind = error.name if isinstance(error, ExtensionRaised) else type(error).__name__
            raise HookFailed(f"it raised {kind}: {message}")
        return task.result()

    def _skip_or_refuse(self, handler: HookHandler, name: str, payload: JSON, cause: str) -> None:
        """Skip a handler, and report it; refuse if the action requires its answer."""
        if name in handler.policy:
            raise HookRefused(
                f"{handler.label} decides about {name}, and could not: {cause}. So this was not done."
            )
        self.failures += 1
        key = (str(payload.get("sessionID", "")), handler.label, name, cause)
        self._tell_once(key, f"{handler.label} failed at {name} and was passed over: {cause}.")

    def _tell_once(self, key: tuple[str, ...], text: str) -> None:
        """Show a text to the user, unless one with this key was shown."""
        if key not in self._reported:
            self._reported[key] = None
            if len(self._reported) > _MAX_REPORTED:
                del self._reported[next(iter(self._reported))]
            self._tell(text)


def _copy(value: JSON) -> JSON:
    return msgspec.json.decode(msgspec.json.encode(value))


def retrieve_exception(future: "asyncio.Future[Any]") -> None:
    """Retrieve an exception that nobody awaits any more, since asyncio would log it."""
    if not future.cancelled():
        future.exception()
