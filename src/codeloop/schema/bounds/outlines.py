"""Limits of outlines of files, of the grammars that make them,
and of the lines and callers that a search shows.
"""

from codeloop.kit.limit import Limit

READ_WHOLE_LINES = Limit(
    "read.whole",
    1_000,
    "lines",
    "a longer file is read as its start and outline, unless lines are named",
)
READ_OUTLINE_LINES = Limit(
    "read.outline", 150, "lines", "of the outline of a file; the smallest nested ones are left out"
)
OUTLINE_BYTES = Limit(
    "outline.bytes", 16 * 1024, "bytes", "outlines of the files below a folder, shared between them"
)
OUTLINE_FILES = Limit(
    "outline.files",
    200,
    "count",
    "files whose outlines are shown of one folder; those nearest to the top",
)
OUTLINED_FILE = Limit(
    "read.parsed",
    2 * 1024 * 1024,
    "bytes",
    "a larger file has no outline, and no block in searches",
)
SEARCH_SHOWN_BYTES = Limit(
    "search.bytes", 24 * 1024, "bytes", "lines shown of one search, shared between its files"
)
SEARCH_BLOCK_LINES = Limit(
    "search.block",
    120,
    "lines",
    "of a larger function its head and two lines around a match are shown",
)
SEARCH_WHOLE_BLOCK_LINES = Limit(
    "search.whole_block",
    40,
    "lines",
    "of a larger function its head and eight lines around a match are shown, unless the match is its head",
)
SEARCH_CALLERS_TIME = Limit(
    "search.callers_time",
    2_000,
    "ms",
    "looking for callers of a function that an edit changed, then none are listed",
)
GRAMMAR_TEXT = Limit(
    "read.tree_size",
    500_000,
    "characters",
    "a larger text is not parsed by a grammar of its language",
)
GRAMMAR_PARSE_TIME = Limit(
    "read.tree_parse",
    300,
    "ms",
    "processor time for parsing a text by a grammar, then it has no tree",
)
