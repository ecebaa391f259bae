"""The hooks of extensions as tools and their calls see them: the runner's protocol,
and the null object without any.
"""

from typing import Protocol

from codeloop.schema.wire import JSON


class HookRunner(Protocol):
    """Calls the handlers of hooks; see `extend.hooks.hooks.Hooks`."""

    def has_handler(self, name: str) -> bool:
        """Return whether a hook has any handler."""
        ...

    async def run(self, name: str, payload: JSON, output: JSON) -> JSON:
        """Pass `output` through the handlers. Raises HookRefused: the act is refused."""
        ...

    async def run_cached(self, name: str, payload: JSON, output: JSON) -> JSON:
        """Call `run`, and cache its result by the arguments until the handlers change."""
        ...


class ToolHooks:
    """The hooks of a call when there are no extensions: no handler runs, nothing changes.

    With extensions its subclass `agent.hooks.extension_hooks.ExtensionHooks` is used.
    """

    @property
    def runner(self) -> HookRunner | None:
        """The runner of the handlers; None: there are no extensions."""
        return None

    async def collect_shell_variables(self, payload: JSON) -> dict[str, str]:
        """Return the variables that extensions set for a command. Raises HookRefused."""
        del payload
        return {}


NO_TOOL_HOOKS = ToolHooks()
