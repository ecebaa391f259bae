"""An operation that clients can request: a row of `schema/api/`,
beside the structs that it takes and gives.

Routes, the OpenAPI document and clients are made from the rows;
`schema/operation_table.py` has all of them.
"""

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, ValidationError, convert

from codeloop.schema.errors import OperationError
from codeloop.schema.wire import JSON, Wire


class NoArguments(Wire):
    """Takes nothing."""


Takes = TypeVar("Takes", bound=Wire)
Gives = TypeVar("Gives")


class Unsupported(Struct, frozen=True):
    """The answer of an operation that is not supported: an error that says so,
    and what to do instead.
    """

    text: str


class Constant(Struct, frozen=True):
    """The answer of an operation that is the same for every request."""

    value: Any


class Operation(Struct, Generic[Takes, Gives], frozen=True):
    """One row: fields of `takes` that are named in `path` come from there,
    the others from the query or the body.

    `handler`: `module:function` below `app/handlers/`, imported for the first request; "" if the
    server's own routes do without.
    `body`: the field that is the whole body. `scope`: answered by the project of a directory,
    or by the process.
    `has_body`: the arguments of a DELETE come in its body, not in its query.
    """

    id: str
    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    takes: type[Takes]
    gives: type[Gives]
    handler: str | Unsupported | Constant = ""
    body: str | None = None
    scope: Literal["project", "process"] = "project"
    has_body: bool = False

    @property
    def takes_body(self) -> bool:
        """Whether the arguments come in a request's body."""
        return self.has_body or self.method in {"POST", "PUT", "PATCH"}

    def convert_arguments(self, path: JSON | None, query: JSON | None, body: Any) -> Takes:
        """Return the arguments that a program in this process names as a request would.
        Raises OperationError.
        """
        values: JSON = {**(query or {}), **(path or {})}
        if self.body is None:
            values |= body or {}
        else:
            values[
                self.takes.__struct_encode_fields__[self.takes.__struct_fields__.index(self.body)]
            ] = body
        try:
            return convert(values, self.takes, strict=False)
        except (ValidationError, TypeError) as error:
            raise OperationError("BadRequest", f"{self.id}: {error}") from error


AnyOperation = Operation[Any, Any]
