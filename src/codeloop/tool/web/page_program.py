"""The program that converts HTML to markdown or text, in a process of its own;
started by `page.py`.

A hostile page can take any time and memory: the caller kills the process at its deadline, the
system at its memory limit. The file is run as a script and imports nothing of the package.
Arguments: `plain` or `markdown`, the seconds and bytes of memory that it may use, CSS selectors of
elements to omit. Standard input: a line with the URL that links are relative to, then the page.
Standard output: one line,
`{"text": ..., "deep": whether parts were nested too deeply}` or `{"error": why}`.
"""

import json
import sys
from contextlib import suppress


def main(output_format: str, seconds: int, memory: int, *dropped: str) -> None:
    """Limit the process, then convert standard input to standard output."""
    import resource

    for name, limit in (("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds), ("RLIMIT_CORE", 0)):
        # Not every system has, or can set, each limit; the caller's deadline holds anyway.
        with suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (limit, limit))
    import html_to_markdown as engine

    base, _, html = sys.stdin.buffer.read().decode("utf-8", "replace").partition("\n")
    options = engine.ConversionOptions(
        output_format="plain" if output_format == "plain" else "markdown",
        base_url=base,
        exclude_selectors=list(dropped),
        extract_metadata=False,
        preprocessing=engine.PreprocessingOptions(remove_navigation=False, remove_forms=False),
    )
    try:
        result = engine.convert(html, options)
    except (engine.ConversionError, ValueError) as error:
        _write_line({"error": str(error)[:500]})
        return
    deep = any("depth" in str(warning.kind) for warning in result.warnings)
    _write_line({"text": (result.content or "").strip(), "deep": deep})


def _write_line(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
