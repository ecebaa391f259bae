"""Bounds how deeply JSON from outside may be nested, at the same depth on every version of Python.

What decodes it stops at depths between some hundred and never, by the version, and what walks the
decoded value then fails anywhere.
"""

import re
from itertools import accumulate

MAX_JSON_DEPTH = 256
"""The most levels of arrays and objects. Real documents have some twenty."""

# Strings, and all that is neither a string nor a bracket.
_REST = rb'(?s)"(?:[^"\\]++|\\.)*+"|[^][{}"]++'
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord('"'): 0}


def check_json_depth(data: bytes | bytearray | str) -> None:
    """Raise RecursionError for JSON that is nested more than MAX_JSON_DEPTH levels deep.
    It need not be valid.
    """
    # Most documents are proved to be shallow by their length or by counting,
    # in a tenth of a microsecond.
    if len(data) <= MAX_JSON_DEPTH:
        return
    text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if text.count(b"[") + text.count(b"{") <= MAX_JSON_DEPTH:
        return
    if max(accumulate(map(_STEPS.__getitem__, re.sub(_REST, b"", text)))) > MAX_JSON_DEPTH:
        raise RecursionError(f"JSON that is nested more than {MAX_JSON_DEPTH} levels deep")
