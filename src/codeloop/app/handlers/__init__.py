"""Handlers of operations: async functions of the project and the operation's arguments, marked with their operation."""

from collections.abc import Awaitable, Callable
from typing import Any

from codeloop.app.project import Project
from codeloop.schema.operation import Gives, Operation, Takes

HANDLERS: dict[str, Callable[[Project, Any], Awaitable[Any]]] = {}
"""By operation id: the handlers of the modules that have been imported."""


def handles(
    op: Operation[Takes, Gives],
) -> Callable[[Callable[[Project, Takes], Awaitable[Gives]]], Callable[[Project, Takes], Awaitable[Gives]]]:
    """Mark a function as the handler of an operation; its types are those of the operation."""

    def add(handler: Callable[[Project, Takes], Awaitable[Gives]]) -> Callable[[Project, Takes], Awaitable[Gives]]:
        HANDLERS[op.id] = handler
        return handler

    return add
