"""Loads an extension's file and finds its tools and hooks."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.extend.functions import FunctionTool, UnsuitedFunction, make_function_tool
from codeloop.extend.host.protocol import ExtensionOffer, LoadSpec, OfferedHook, OfferedTool
from codeloop.extend.host.python.program_tool import ProgramTool, load_program
from codeloop.extension import HOOKS_ATTRIBUTE, TOOL_ATTRIBUTE

_PLUGIN_FILES = ("__init__.py", "plugin.py", "extension.py")


class NotLoadable(Exception):
    """An extension can't be used; the text says what to change."""


class LoadedFunctions(Struct):
    """The functions of an extension: tools by name, hooks by name in the order of the file.

    `policies`: the names of hooks whose failure refuses the action that they judge. `problems`: why
    functions can't be tools.
    """

    tools: dict[str, FunctionTool | ProgramTool] = struct_field(
        default_factory=dict[str, FunctionTool | ProgramTool]
    )
    hooks: dict[str, list[Callable[..., Any]]] = struct_field(
        default_factory=dict[str, list[Callable[..., Any]]]
    )
    policies: set[str] = struct_field(default_factory=set[str])
    problems: list[str] = struct_field(default_factory=list[str])

    @property
    def offer(self) -> ExtensionOffer:
        """The functions as an offer for the protocol."""
        tools = (
            OfferedTool(each.name, each.description, each.parameters)
            for each in self.tools.values()
        )
        hooks = (OfferedHook(name, name in self.policies) for name in self.hooks)
        return ExtensionOffer(tuple(tools), tuple(hooks), problems=tuple(self.problems))


async def load_extension(extension: LoadSpec) -> LoadedFunctions:
    """Import an extension, or ask a program for its schema.
    Raises NotLoadable, and whatever its code raises.
    """
    if extension.kind == "tool" and Path(extension.path).suffix != ".py":
        program = await load_program(extension.path)
        return LoadedFunctions({program.name: program})
    return _load_functions(extension)


def _load_functions(extension: LoadSpec) -> LoadedFunctions:
    module = _import_module(extension)
    loaded = LoadedFunctions()
    for name, function in _list_functions(module):
        hooks: list[tuple[str, bool]] = getattr(function, HOOKS_ATTRIBUTE, [])
        for hook, is_policy in hooks:
            loaded.hooks.setdefault(hook, []).append(function)
            if is_policy:
                loaded.policies.add(hook)
        # A plugin marks its tools with `@tool`; in a file of tools every public function is one.
        is_marked = hasattr(function, TOOL_ATTRIBUTE)
        if not is_marked and (
            hooks or extension.kind == "plugin" or not _is_public(module, name, function)
        ):
            continue
        marked_texts: tuple[str | None, str | None] = getattr(
            function, TOOL_ATTRIBUTE, (None, None)
        )
        tool_name, description = marked_texts
        try:
            tool = make_function_tool(function, name=tool_name, description=description)
        except UnsuitedFunction as error:
            loaded.problems.append(str(error))
        else:
            loaded.tools[tool.name] = tool
    if not loaded.tools and not loaded.hooks and not loaded.problems:
        if extension.kind == "tool":
            raise NotLoadable("it defines no tool: it needs a public function.")
        raise NotLoadable(
            "it defines neither a tool nor a hook: it needs a function marked with @tool or @hook."
        )
    return loaded


def _import_module(extension: LoadSpec) -> ModuleType:
    """Import a file, a package's folder, or the module of an entry point (`module:name`)."""
    path = Path(extension.path)
    if path.is_dir():
        path = next(
            (path / name for name in _PLUGIN_FILES if (path / name).is_file()),
            path / _PLUGIN_FILES[0],
        )
    elif "/" not in extension.path:
        return importlib.import_module(extension.path.partition(":")[0])
    # The number keeps a reloaded file apart from its earlier version, which may still be running.
    name = f"codeloop_extensions.{extension.kind}_{path.stem}_{len(sys.modules)}"
    folder = str(path.parent)
    if folder not in sys.path:
        # Appended, not prepended: a file of the folder must not hide a module
        # of the standard library.
        sys.path.append(folder)
    is_package = path.name == "__init__.py"
    spec = spec_from_file_location(
        name, path, submodule_search_locations=[folder] if is_package else None
    )
    if spec is None or spec.loader is None:
        raise NotLoadable(f"{path} is not a Python file.")
    module = module_from_spec(spec)
    # Registered before it is executed: dataclasses and pickle look up the module of a class there.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _list_functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of a module, and other callables that are marked, with their names."""
    # A copy: a module may still change in a thread that it started.
    for name, value in list(vars(module).items()):
        is_marked = callable(value) and (
            hasattr(value, HOOKS_ATTRIBUTE) or hasattr(value, TOOL_ATTRIBUTE)
        )
        if is_marked or inspect.isfunction(value):
            yield name, value


def _is_public(module: ModuleType, name: str, function: Callable[..., Any]) -> bool:
    """Return whether a function of a tools file is a tool: listed in `__all__`,
    or public and defined there.
    """
    public_names: Any = getattr(module, "__all__", None)
    if public_names is not None:
        return name in public_names
    return not name.startswith("_") and function.__module__ == module.__name__
