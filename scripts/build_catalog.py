"""Packs a models.dev document (https://models.dev/api.json) into the catalog
that ships with the package.

python scripts/build_catalog.py api.json 2026-11-20
"""

import sys
from pathlib import Path

from codeloop.model.catalog.catalog import BUNDLED_FILE
from codeloop.model.catalog.packer import pack_catalog, parse_source


def main(arguments: list[str]) -> int:
    """Take the document's path and its ISO date; return the exit code."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python scripts/build_catalog.py MODELS.JSON YYYY-MM-DD\n")
        return 2
    source = parse_source(Path(arguments[0]).read_bytes())
    packed = pack_catalog(source, arguments[1])
    BUNDLED_FILE.parent.mkdir(exist_ok=True)
    BUNDLED_FILE.write_bytes(packed)
    models = sum(
        model.calls_tools for provider in source.values() for model in provider.models.values()
    )
    sys.stdout.write(
        f"{BUNDLED_FILE}: {len(source)} providers, {models} models, {len(packed)} bytes\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
