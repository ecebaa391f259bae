"""Patterns that are kept compiled.

A regular expression is a text constant, and `re.search(NAME, text)` compiles it at its first use:
no start pays for those that it does not meet. `re` keeps the last few hundred; hot loops, and
`match` from an offset, ask here.
"""

import re
from functools import cache


@cache
def compile_once(pattern: str) -> re.Pattern[str]:
    """Compile a constant, and keep the result as long as the process."""
    return re.compile(pattern)
