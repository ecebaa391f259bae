"""What a row of the table of version 2 consists of."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.schema.operation import AnyOperation, Constant, Unsupported
from codeloop.schema.wire import JSON, Wire

AnswerWrap = Literal["located", "data", "plain", "none"]
"""How an answer is wrapped: under `data` with its `location`, under `data` alone, not at all;
none: there is no answer.

The contract of version 2 wraps each operation in one of these ways.
"""


class Forward(Struct, frozen=True):
    """An operation of version 1 that answers one of version 2,
    and how its values become those of version 2.

    `take`: makes its arguments of those of version 2; without it, they are the fields of the same
    names. Without `translate`, its answer is the same in both versions.
    """

    operation: AnyOperation
    translate: Callable[[Any], Any] = msgspec.to_builtins
    take: Callable[[Any], Wire] | None = None

    def make_arguments(self, args: Wire) -> Wire:
        """Return the arguments of the operation of version 1."""
        if self.take is not None:
            return self.take(args)
        takes_type = self.operation.takes
        names = [name for name in takes_type.__struct_fields__ if name in args.__struct_fields__]
        return takes_type(**{name: getattr(args, name) for name in names})


Answer = Forward | Unsupported | Constant | str
"""What answers an operation; a text: the handler, as `module:function` of this folder,
loaded for the first request.
"""
RowText = tuple[str, type[Wire], Answer]
"""A row: how its answer is wrapped, its id, method and path, in a text; its arguments;
what answers it.
"""


def each(translate: Callable[[Any], JSON]) -> Callable[[Iterable[Any]], list[JSON]]:
    """Return a translation of lists."""
    return lambda values: [translate(value) for value in values]
