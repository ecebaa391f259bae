"""`ResultType`: makes the JSON Schema of a Python type,
and converts the model's answer to an instance of it.
"""

import sys
from typing import Any, Generic, TypeVar, cast

import msgspec

from codeloop.extend.functions import format_pydantic_errors
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

T = TypeVar("T")


class ResultType(Generic[T]):
    """A dataclass, a TypedDict, a msgspec Struct, a pydantic model,
    or a plain type such as `list[str]`.

    `schema`: the JSON Schema that the model gets. Raises CodeloopError for a type that
    can't be described by one.
    """

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._adapter: Any = None
        """pydantic's converter for the type; None: msgspec converts to it."""
        self.schema: JSON = self._make_schema()

    def convert(self, value: object) -> T:
        """Convert a JSON value to an instance. Raises ValueError, which says what does not fit."""
        if self._adapter is not None:
            try:
                return cast("T", self._adapter.validate_python(value))
            except ValueError as error:
                raise ValueError(format_pydantic_errors(error)) from None
        return msgspec.convert(value, self._kind, strict=False)

    def _make_schema(self) -> JSON:
        """Return the schema, made by msgspec, or for types of pydantic by pydantic,
        which is then imported already.
        """
        try:
            return msgspec.json.schema(self._kind)
        except (TypeError, NotImplementedError) as error:
            pydantic: Any = sys.modules.get("pydantic")
            if pydantic is not None:
                try:
                    self._adapter = pydantic.TypeAdapter(self._kind)
                    schema: JSON = self._adapter.json_schema()
                except pydantic.errors.PydanticUserError:
                    self._adapter = None
                else:
                    return schema
            name = getattr(self._kind, "__name__", str(self._kind))
            raise CodeloopError(
                f"{name} can't be the result of a prompt: {error}. Use a dataclass, a TypedDict, a msgspec Struct, a "
                "pydantic model, or plain types."
            ) from None
