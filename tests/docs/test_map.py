"""The map in docs/map.md says what the docstrings of the modules say."""

from scripts.build_map import CODE, PAGE, list_modules, make_page, read_summary


def test_the_map_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == make_page(), "run `make map`"


def test_each_module_says_what_it_is() -> None:
    modules = [path for path in list_modules() if path.name != "__init__.py"]
    assert [str(path) for path in modules if not read_summary(CODE / path)] == []
