"""Replaces the references `{env:NAME}` and `{file:PATH}` in configuration values."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from codeloop.config.files import read_text
from codeloop.config.paths import Paths
from codeloop.config.sources import Layer
from codeloop.kit.jsonc import KeyPath, is_list, is_object
from codeloop.kit.small_files import FileState, read_file_state
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES

REFERENCE_PATTERN = r"\{(env|file):([^{}]+)\}"


def read_variable(name: str, environment: Mapping[str, str]) -> str:
    """Return the value of an `env` reference, `NAME` or `NAME:-DEFAULT`: that of the variable,
    else the default.
    """
    name, _, default = name.partition(":-")
    return environment.get(name, "") or default


def map_references(
    value: Any, read_reference: Callable[[str, str, KeyPath], str], keys: KeyPath = ()
) -> Any:
    """Return a JSON value with each reference in its texts replaced by a
    result of `read_reference`.

    That gets the kind of the reference (`env` or `file`), its name or path,
    and the path of keys of the text.
    """
    if isinstance(value, str):
        return re.sub(
            REFERENCE_PATTERN, lambda match: read_reference(match[1], match[2].strip(), keys), value
        )
    if is_object(value):
        return {
            key: map_references(each, read_reference, (*keys, key)) for key, each in value.items()
        }
    if is_list(value):
        return [
            map_references(each, read_reference, (*keys, index)) for index, each in enumerate(value)
        ]
    return value


def replace_references(
    layer: Layer,
    paths: Paths,
    environment: Mapping[str, str],
    files: dict[Path, FileState] | None = None,
) -> Any:
    """Return a layer's values with all references replaced;
    references in the inserted texts stay as they are.

    An unset variable is the empty text; `{env:NAME:-text}` is the text if the variable is unset or
    empty. A file's path is relative to the layer's own folder, or starts with `~`; blanks around
    its content are dropped. The files are added to `files`, each with its state before it was read.
    Raises CodeloopError for a file that is missing or can't be read.
    """

    def read_reference(kind: str, name: str, keys: KeyPath) -> str:
        if kind == "env":
            return read_variable(name, environment)
        file = layer.base / paths.expand_home(name)
        try:
            # Taken before the file is read, so that a change in between shows later.
            if files is not None:
                files.setdefault(file, read_file_state(file))
            text = read_text(file, CONFIG_BYTES.value)
        except (CodeloopError, ValueError) as error:
            raise CodeloopError(f"{layer.format_location(keys)}: {error}") from error
        if text is None:
            raise CodeloopError(
                f"{layer.format_location(keys)}: the file {file} of {{file:{name}}} does not exist."
            )
        return text.strip()

    # Most layers have no reference, so their values need no copy. Where forms of other programs
    # were converted, `${NAME}` in the text has become one.
    if (
        not layer.notes
        and "{env:" not in layer.document.text
        and "{file:" not in layer.document.text
    ):
        return layer.raw
    return map_references(layer.raw, read_reference)
