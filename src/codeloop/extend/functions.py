"""Makes tools of typed Python functions. Extension hosts and the library use it.

The docstring and the annotations become the tool's description and JSON Schema. A call's arguments
are checked and converted to the annotated types.
"""

import asyncio
import inspect
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.extension import Context
from codeloop.kit.jsonc import is_object
from codeloop.kit.text.docstrings import read_docstring
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON
from codeloop.tool.json_schema import drop_nulls, format_signature, inline_references

T = TypeVar("T")
_TOOL_NAME = r"[A-Za-z0-9_-]{1,64}"
_RESULT_KEYS = frozenset(("title", "output", "metadata", "attachments"))
_CONTEXT_PARAMETER = "ctx"
# A marker of its own, since None may be a real argument.
_OMITTED: Any = object()


class UnsuitedFunction(CodeloopError):
    """The function can't be a tool; the text says what to change."""


class WrongArguments(CodeloopError):
    """A call does not fit the parameters; the text is for the model."""


class FunctionResult(Struct, frozen=True):
    """The result of a call. `attachments`: objects with `mime`,
    `url` (`data:...`) and perhaps `filename`.
    """

    output: str
    title: str = ""
    metadata: JSON = struct_field(default_factory=dict[str, Any])
    attachments: tuple[JSON, ...] = ()


class FunctionTool(Struct, frozen=True):
    """A function with its description for models.

    `parameters`: the JSON Schema of its arguments. `parameters_type`: a struct with
    a field for each of them.
    `context_parameter`: the name of the parameter that gets the Context, or "".
    """

    name: str
    description: str
    parameters: JSON
    function: Callable[..., Any]
    parameters_type: type[Struct]
    context_parameter: str = ""
    pydantic_adapters: dict[str, Any] = {}
    """The pydantic TypeAdapter of each parameter with a pydantic type, by name."""

    def convert_arguments(self, arguments: JSON) -> JSON:
        """Convert a call's arguments to the annotated types; omitted parameters are left out.
        Raises WrongArguments.

        A null for an optional parameter counts as omitted.
        Text that holds a number is converted to one.
        """
        present = drop_nulls(arguments, self.parameters)
        unknown = present.keys() - self.parameters["properties"].keys()
        if unknown:
            raise self._make_error(f"it has no parameter {', '.join(sorted(unknown))}")
        try:
            # Not strict: models often send a number or a boolean as text.
            struct = msgspec.convert(
                present, self.parameters_type, strict=False, dec_hook=_decode_path
            )
        except (ValueError, OverflowError) as error:
            raise self._make_error(str(error)) from error
        values = {name: getattr(struct, name) for name in self.parameters_type.__struct_fields__}
        return {
            name: self._adapt(name, value)
            for name, value in values.items()
            if value is not _OMITTED
        }

    def _make_error(self, why: str) -> WrongArguments:
        expected = format_signature(self.name, self.parameters)
        return WrongArguments(
            f"The {self.name} tool was called with invalid arguments: {why}. It takes {expected}."
        )

    def _adapt(self, name: str, value: Any) -> Any:
        if name not in self.pydantic_adapters:
            return value
        try:
            return self.pydantic_adapters[name].validate_python(value)
        except ValueError as error:
            raise self._make_error(format_pydantic_errors(error, name)) from error

    async def call(self, arguments: JSON, context: Context | None = None) -> FunctionResult:
        """Call the function, a synchronous one in a thread.
        Raises WrongArguments, and any error of the function.
        """
        values = self.convert_arguments(arguments)
        if self.context_parameter:
            values[self.context_parameter] = context
        call = partial(self.function, **values)
        # A plain function may block, so it runs in a thread;
        # it may still return an awaitable, which is awaited here.
        value = (
            await call()
            if inspect.iscoroutinefunction(self.function)
            else await asyncio.to_thread(call)
        )
        return convert_result(await value if inspect.isawaitable(value) else value)


def make_function_tool(
    function: Callable[..., Any], *, name: str | None = None, description: str | None = None
) -> FunctionTool:
    """Make a tool of a function. Its name and docstring are used unless others are given.

    Raises UnsuitedFunction if a parameter can't be described to a model, or the name has other
    characters than services accept.
    """
    name = name or str(getattr(function, "__name__", type(function).__name__))
    if not re.fullmatch(_TOOL_NAME, name):
        raise UnsuitedFunction(
            f"{name!r} is not a valid tool name: use letters, digits, _ and -, 64 at most."
        )
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise UnsuitedFunction(
            f"{name} yields: a tool returns its result, and shows progress by ctx.report."
        )
    hints = _read_type_hints(function, name)
    summary, documented_parameters = read_docstring(inspect.getdoc(function) or "")
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    context = ""
    pydantic_adapters: dict[str, Any] = {}
    descriptions: dict[str, str] = {}
    for parameter in inspect.signature(function).parameters.values():
        # Models give arguments by name only: positional-only parameters,
        # `*args` and `**kwargs` can't be filled.
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise UnsuitedFunction(
                f"{name} takes {parameter} without a name: a model names what it gives."
            )
        hint = hints.get(parameter.name, Any)
        if parameter.name == _CONTEXT_PARAMETER or hint is Context:
            context = parameter.name
            continue
        if text := _find_description(hint) or documented_parameters.get(parameter.name, ""):
            descriptions[parameter.name] = text
        if _is_pydantic(hint):
            pydantic_adapters[parameter.name] = _make_adapter(hint)
            # pydantic converts this value itself, later: msgspec passes it through unchanged.
            hint = Any
        fields.append(_make_field(parameter, hint))
    parameters_type = msgspec.defstruct(f"Parameters of {name}", fields, kw_only=True)
    schema = _make_schema(name, parameters_type, pydantic_adapters, descriptions)
    text = description if description is not None else summary
    return FunctionTool(
        name=name,
        description=text or name,
        parameters=schema,
        function=function,
        parameters_type=parameters_type,
        context_parameter=context,
        pydantic_adapters=pydantic_adapters,
    )


def wait_in_thread(loop: asyncio.AbstractEventLoop, awaitable: Awaitable[T]) -> T:
    """Wait in a thread, where synchronous functions run, for an awaitable of the loop `loop`;
    return its result.

    Raises CodeloopError in async functions, where waiting would deadlock.
    """
    # A thread of a plain function has no running loop: `get_running_loop`
    # raises RuntimeError there.
    with suppress(RuntimeError):
        if asyncio.get_running_loop() is loop:
            raise CodeloopError("ctx.wait is for plain functions. Use `await` in this one.")

    async def wait() -> T:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(wait(), loop).result()


def convert_result(value: Any) -> FunctionResult:
    """Convert a function's return value to a FunctionResult.
    A value that is neither text nor a result becomes JSON.

    Raises TypeError if the value can't be written as JSON.
    """
    if isinstance(value, FunctionResult):
        return value
    if value is None or isinstance(value, str):
        return FunctionResult(value or "")
    # Through plain JSON values, so that dataclasses, structs and pydantic models are all accepted.
    plain: Any = msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_other)
    if isinstance(plain, str):
        return FunctionResult(plain)
    if is_object(plain) and "output" in plain and plain.keys() <= _RESULT_KEYS:
        try:
            return msgspec.convert(
                {key: each for key, each in plain.items() if each is not None}, FunctionResult
            )
        except msgspec.ValidationError as error:
            raise TypeError(f"the result is invalid: {error}") from error
    text = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    return FunctionResult(text, metadata={"structured": plain})


def _read_type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    # A `functools.partial` has its function as `func`;
    # another object that can be called has `__call__`.
    routine = (
        function
        if inspect.isroutine(function)
        else getattr(function, "func", type(function).__call__)
    )
    try:
        return get_type_hints(routine, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise UnsuitedFunction(f"The annotations of {name} can't be read: {error}.") from error


def _make_field(parameter: inspect.Parameter, hint: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return the struct field of a parameter. It has a default if a call may omit the parameter."""
    if parameter.default is not parameter.empty:
        return (parameter.name, hint, struct_field(default_factory=lambda: _OMITTED))
    # A parameter that takes None is optional for the model even without a default.
    return (parameter.name, hint, None) if _takes_none(hint) else (parameter.name, hint)


def _takes_none(hint: Any) -> bool:
    plain_hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_origin(plain_hint) in {Union, UnionType} and type(None) in get_args(plain_hint)


def _make_schema(
    name: str, parameters_type: type[Struct], pydantic_adapters: JSON, descriptions: dict[str, str]
) -> JSON:
    try:
        (root_reference,), definitions = msgspec.json.schema_components(
            [parameters_type], ref_template="{name}", schema_hook=_make_path_schema
        )
    except TypeError as error:
        raise UnsuitedFunction(
            f"A parameter of {name} can't be described to a model: {error}."
        ) from error
    for parameter, adapter in pydantic_adapters.items():
        parameter_schema = adapter.json_schema(ref_template=f"{parameter}/{{model}}")
        # With the parameter's name before each, as two parameters may have different
        # types of the same name.
        definitions |= {
            f"{parameter}/{key}": each for key, each in parameter_schema.pop("$defs", {}).items()
        }
        definitions[root_reference["$ref"]]["properties"][parameter] = parameter_schema
    for definition in definitions.values():
        # msgspec copies the docstrings of classes into the schema,
        # which are not written for models.
        definition.pop("description", None)
    schema: JSON = inline_references(root_reference, definitions)
    for parameter, text in descriptions.items():
        schema["properties"][parameter]["description"] = text
    return schema


def _find_description(hint: Any) -> str:
    """Return the description in an annotation, as in `Annotated[str, "text"]`,
    or in its `Meta` or `Field`; else "".
    """
    for each in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        text = each if isinstance(each, str) else getattr(each, "description", None)
        if isinstance(text, str):
            return text
    return ""


def _is_pydantic(hint: Any) -> bool:
    """Return whether a parameter is a pydantic type; if so, pydantic is already imported."""
    # Looked up instead of imported: pydantic takes long to load,
    # and a function with pydantic types has loaded it already.
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic is None:
        return False
    if isinstance(hint, type) and issubclass(hint, pydantic.BaseModel):
        return True
    return isinstance(hint, pydantic.fields.FieldInfo) or any(
        _is_pydantic(each) for each in get_args(hint)
    )


def format_pydantic_errors(error: Exception, *location: str) -> str:
    """Format pydantic's errors in one line; `location`: where the value is."""
    errors: Callable[..., list[JSON]] | None = getattr(error, "errors", None)
    problems = (
        [{"msg": str(error), "loc": ()}]
        if errors is None
        else errors(include_url=False, include_context=False)
    )
    return "; ".join(
        f"{each['msg']} - at `{'.'.join(map(str, ('$', *location, *each['loc'])))}`"
        for each in problems
    )


def _make_adapter(hint: Any) -> Any:
    return cast("Any", sys.modules["pydantic"]).TypeAdapter(hint)


def _make_path_schema(kind: type) -> JSON:
    if issubclass(kind, PurePath):
        return {"type": "string"}
    raise TypeError(f"{kind.__name__} is not a type that JSON can hold")


def _decode_path(kind: type, value: Any) -> Any:
    if not issubclass(kind, PurePath):
        raise NotImplementedError
    if not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
    return kind(value)


def _encode_other(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(
        f"a tool returns text or what can be written as JSON, not {type(value).__name__}"
    )
