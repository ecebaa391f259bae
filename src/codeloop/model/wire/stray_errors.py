"""Finds errors that services send inside a successful answer in forms of their own,
outside of `error`. Pure.
"""

from collections.abc import Mapping
from typing import Any

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

_TEXT_NAMES = (
    *(
        "message",
        "detail",
        "msg",
        "error_message",
        "error_msg",
        "errorMessage",
        "errorMsg",
        "error_description",
    ),
    *("err_msg", "errmsg", "status_msg", "statusMessage", "description", "reason"),
)
_CODE_NAMES = (
    *("code", "error_code", "errorCode", "status_code", "statusCode", "status"),
    *("error_type", "errorType", "type"),
)
# Objects in which such fields stand: of MiniMax and Groq, then of gateways in general.
_INNER_NAMES = ("base_resp", "x_groq", "errors", "error_details", "data", "result")
# Codes of MiniMax, which mean a status of HTTP.
_STATUS_BY_CODE: Mapping[Any, int | str] = {
    1000: 500,
    1001: 504,
    1002: 429,
    1004: 401,
    1008: 402,
    1013: 500,
    1024: 500,
    1033: 503,
    1039: "context_length_exceeded",
    2013: 400,
    2049: 401,
}


def find_stray_error(payload: Any) -> JSON | None:
    """Return the error that a document without an answer holds, as `code` and `message`;
    None: it holds none.

    Keep-alive messages have no text, and MiniMax's `base_resp` with the code
    0 says that all is well.
    """
    if not is_object(payload):
        return None
    if is_object(base := payload.get("base_resp")):
        return _make_error(base) if base.get("status_code") else None
    if (error := _make_error(payload)) is not None:
        return error
    for name in _INNER_NAMES:
        inner = payload.get(name)
        first = inner[0] if is_list(inner) and inner else inner
        if isinstance(first, str) and name == "errors":
            return {"message": first}
        if is_object(first):
            error = first["error"] if is_object(first.get("error")) else first
            if isinstance(text := first.get("error"), str):
                return {"message": text}
            if (found := _make_error(error)) is not None:
                return found
    if payload.get("success") is False:
        return {"message": "the service refused the request and gave no reason"}
    return None


def _make_error(fields: JSON) -> JSON | None:
    text = next(
        (value for name in _TEXT_NAMES if isinstance(value := fields.get(name), str) and value), ""
    )
    if not text:
        return None
    codes = [
        value for name in _CODE_NAMES if isinstance(value := fields.get(name), int | str) and value
    ]
    # A number says more than a word such as `error`.
    code = next(
        (each for each in codes if not isinstance(each, str) or each.isdigit()),
        codes[0] if codes else None,
    )
    return {"message": text, "code": _STATUS_BY_CODE.get(code, code)}
