"""Handlers of hooks that ask extensions, or refuse in place of a policy that can't
be loaded or has no hook.
"""

from functools import partial

from codeloop.extend.hooks.answer_filter import Reach, filter_answer
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.extend.host.extension import Extension, SendToExtension
from codeloop.extend.host.protocol import AskHook
from codeloop.kit.jsonc import is_object
from codeloop.schema.wire import JSON


class ExtensionHandler:
    """Asks an extension; implements `extend.hooks.hooks.HookHandler`.

    `names`: the extension's hooks; `policy`: those of them whose actions are refused without its
    answer; `send` sends the extension a request;
    `reach`: how it is confined, which bounds its answers.
    """

    def __init__(
        self,
        extension: Extension,
        names: frozenset[str],
        policy: frozenset[str],
        send: SendToExtension,
        reach: Reach = "all",
    ) -> None:
        self.label = extension.name
        self.names = names
        self.policy = policy
        self.is_project = extension.is_project
        # A user who switches the sandbox of extensions off lets theirs do what the user may;
        # a project's never is.
        self.may_allow = reach == "all" and not extension.is_project
        self.seconds: float | None = None
        self._extension = extension
        self._send = send
        self._reach: Reach = reach

    async def call(self, name: str, payload: JSON, output: JSON) -> JSON:
        """See HookHandler."""
        message = partial(
            AskHook, extension=self._extension.name, name=name, input=payload, output=output
        )
        answer = await self._send(self._extension, message, None)
        if not is_object(answer):
            raise HookFailed(f"it answered {type(answer).__name__}, not an object")
        return filter_answer(self._reach, name, payload, output, answer)


class ClosedHandler:
    """Refuses every action that a policy decides about while the policy can't be loaded,
    or has no hook.

    `names`: the hooks of these actions. `reason`: why the policy can't decide.
    """

    def __init__(self, extension: Extension, names: frozenset[str], reason: str) -> None:
        self.label = extension.name
        self.names = names
        self.policy = names
        self.is_project = extension.is_project
        self.may_allow = False
        self.seconds: float | None = None
        self._reason = reason

    async def call(self, _name: str, _payload: JSON, _output: JSON) -> JSON:
        """Raise HookFailed: the failure of a policy refuses the action."""
        raise HookFailed(self._reason)
