"""Searches a text for typed words."""

import re


def compile_word_search(query: str, between: str = r"\s+") -> re.Pattern[str]:
    """Compile a search pattern for typed words: case counts if there is a capital letter.

    `between`: the expression for what may separate two words.
    """
    words = between.join(map(re.escape, query.split()))
    return re.compile(words, 0 if any(map(str.isupper, query)) else re.IGNORECASE)
