"""The reference of the library is what its docstrings say, and leaves nothing out."""

import importlib.util

import codeloop
from tests.docs.pages import ROOT


def test_the_reference_is_made_from_the_docstrings() -> None:
    spec = importlib.util.spec_from_file_location(
        "build_reference", ROOT / "scripts" / "build_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    page = (ROOT / "docs" / "library-reference.md").read_text(encoding="utf-8")
    assert page == build.format_page(), "run `make reference`"
    assert "| field |" in page
    assert all(
        f"### {name}\n" in page for name in dir(codeloop) if name not in {"__version__", "sync"}
    )
