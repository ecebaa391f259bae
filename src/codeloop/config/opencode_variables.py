"""Variables of OpenCode that mean a setting of the configuration.

Those that have no counterpart are named by `app/doctor/setup_checks.py`.
"""

from collections.abc import Iterator, Mapping

from codeloop.kit.jsonc import JsoncError, is_object, parse_jsonc
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

_TIMEOUT = "OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS"
_NO_COMPACTION = "OPENCODE_DISABLE_AUTOCOMPACT"
_PERMISSION = "OPENCODE_PERMISSION"
SETTING_VARIABLES = (_TIMEOUT, _NO_COMPACTION, _PERMISSION)


def read_setting_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, JSON]]:
    """Yield the name of each variable that is set, and the settings that it stands for.

    A number or switch that is not valid counts as not set, as in OpenCode.
    Raises CodeloopError for permission rules that can't be read, since they may deny something.
    """
    milliseconds = environment.get(_TIMEOUT, "")
    if milliseconds.isascii() and milliseconds.isdigit() and int(milliseconds):
        yield _TIMEOUT, {"commands": {"timeout": int(milliseconds)}}
    if environment.get(_NO_COMPACTION, "").lower() in {"1", "true"}:
        yield _NO_COMPACTION, {"compaction": {"auto": False}}
    if text := environment.get(_PERMISSION):
        try:
            rules = parse_jsonc(text.encode(errors="replace").decode()).value
        except JsoncError as error:
            raise CodeloopError(f"{_PERMISSION}:{error.position}: {error}.") from error
        if not is_object(rules) and rules not in ("allow", "ask", "deny"):
            raise CodeloopError(
                f'{_PERMISSION}: expected rules as those of `permission`, such as {{"bash": "ask"}}.'
            )
        yield _PERMISSION, {"permission": rules}
