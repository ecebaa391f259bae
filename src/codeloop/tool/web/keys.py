"""The variables that hold keys of search services: quick to import, since child processes never get them."""

TAVILY = ("TAVILY_API_KEY",)
BRAVE = ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY")
EXA = ("EXA_API_KEY",)
SEARCH_KEYS = (*TAVILY, *BRAVE, *EXA)
