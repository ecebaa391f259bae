"""codeloop: an open coding agent; terminal program, server and library in one package.

    import asyncio, codeloop

    async def main() -> None:
        async with codeloop.open(".") as project:
            print(await project.ask("What does this project do?"))

    asyncio.run(main())

`codeloop.sync` is the same without asyncio. Nothing is loaded before it is used: see
`__init__.pyi` for the names.
"""

from codeloop.kit.lazy import load_object

_NAMES_BY_MODULE = {
    "library.project": ("AgentProject",),
    "library.session": ("AgentSession", "SaidMessage"),
    "library.events": (
        *(
            "Answer",
            "SessionEvent",
            "ToolUse",
            "TurnDone",
            "StepEnded",
            "FilesChanged",
            "RetryWaiting",
            "Notice",
        ),
        *("TextAdded", "ThinkingAdded", "ToolStarted", "ToolReported", "ToolEnded"),
    ),
    "library.budget": ("Budget",),
    "library.errors": (
        *("CodeloopError", "TurnFailed", "LimitReached"),
        *("WrongResult", "ToolRefused", "ProjectClosed"),
    ),
    "library.options": (
        *("TurnLimits", "PermissionQuestion", "Allow", "Deny", "ModelQuestion", "Choice"),
        *("OpenOptions", "ConnectOptions", "SessionOptions", "Action"),
    ),
    "extension": ("Context",),
    "schema.errors": ("SessionNotFound",),
    "schema.message": ("Tokens",),
}
"""The public names of the library by the module that they are imported from."""
_TARGETS = {
    name: (module, name) for module, names in _NAMES_BY_MODULE.items() for name in names
} | {
    "__version__": ("kit.version", "VERSION"),
    "open": ("library.opening", "open_directory"),
    "connect": ("library.opening", "connect_to"),
    # A module, which its import makes an attribute of this package; any name in it would do.
    "sync": ("sync", "__name__"),
}
"""Each public name with the module that has it and its name there."""


def __getattr__(name: str) -> object:
    """Load a public name at its first use (PEP 562); `import *` asks for `__all__`."""
    if name == "__all__":
        return __dir__()
    if name not in _TARGETS:
        raise AttributeError(f"module 'codeloop' has no attribute {name!r}")
    value = load_object(":".join(_TARGETS[name]))
    # Stored, so that the next access does not come here.
    # The module `sync` is an attribute already, which stays.
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    """Return the public names, sorted."""
    return sorted(_TARGETS)
