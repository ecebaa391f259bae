"""The map in docs/map.md says what the docstrings of the modules say."""

from scripts.build_map import AUTOMATION, CODE, PAGE, list_modules, make_page, read_summary


def test_the_map_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == make_page(), "run `make map`"


def test_each_module_says_what_it_is() -> None:
    modules = [
        package / path for package in (CODE, AUTOMATION) for path in list_modules(package, package)
    ]
    silent = [path for path in modules if path.name != "__init__.py" and not read_summary(path)]
    assert silent == []
