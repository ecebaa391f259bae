"""Handlers of operations: async functions that take the project and the operation's arguments.

Each is marked with `@handles`; the modules are listed in `app.dispatch` and `app.handlers.server_only`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from codeloop.app.project import Project
from codeloop.schema.operation import Gives, Operation, Takes

HANDLERS: dict[str, Callable[[Project, Any], Awaitable[Any]]] = {}
"""The handlers of the modules that have been imported, by operation id."""


def handles(
    op: Operation[Takes, Gives],
) -> Callable[[Callable[[Project, Takes], Awaitable[Gives]]], Callable[[Project, Takes], Awaitable[Gives]]]:
    """Mark a function as the handler of an operation; its types are those of the operation."""

    def add(handler: Callable[[Project, Takes], Awaitable[Gives]]) -> Callable[[Project, Takes], Awaitable[Gives]]:
        HANDLERS[op.id] = handler
        return handler

    return add
