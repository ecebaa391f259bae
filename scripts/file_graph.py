"""Which file of the repository uses which, by their texts: imports anywhere,
names of modules and files in strings.

A file that nothing names, such as a prompt beside its tool or a theme in a folder, is used by the
module of its name, else by those of the nearest folder that has modules. A test uses the
`conftest.py` of its folder and those above.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

CODE_FOLDERS = ("src", "automation", "tests", "bench", "scripts", "examples")
TESTS_OF_FOLDERS = {"docs": "tests/docs", "examples": "tests/examples", "web": "tests/web"}
"""Folders whose files their tests find by listing them."""
_DOTTED_NAME = re.compile(r"\b(?:codeloop(?:_automation)?|tests|bench|scripts)(?:\.\w+)+")
_FROM_IMPORT = re.compile(
    r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\((?:#.*|[^)#])*\)|.*)", re.MULTILINE
)
_COMMENT = re.compile(r"#.*")
_LAZY_NAME = re.compile(r""""((?:[a-z_]\w*\.)*[a-z_]\w*)(?::[A-Za-z_]\w*)?\"""")
"""A row of a table names what is imported when used: `room.module:name`,
or `module:name` in its room or folder.
"""
_OPERATIONS_FOLDER, _HANDLERS = "src/codeloop/schema/api/", "codeloop.app.handlers"
"""The rows of operations name their handlers within this package."""
_ADDING, _ADDED = "src/codeloop/kit/entry_points.py", "automation/pyproject.toml"
"""The module that loads what another distribution adds, and the file that names it."""
_FILE_NAME = re.compile(r"""["'/ `]((?:[\w.+-]+/)*[\w+-][\w.+-]*\.\w{1,12})\b""")


def name_module(path: str) -> str:
    """Return the dotted name of a Python file: `codeloop.kit.limit` of
    `src/codeloop/kit/limit.py`.
    """
    dotted = ".".join(PurePosixPath(path).with_suffix("").parts)
    return dotted.removeprefix("automation.").removeprefix("src.").removesuffix(".__init__")


class FileGraph:
    """Who uses whom among the files of a repository;
    paths are relative to its root, with slashes.
    """

    def __init__(self, root: Path, also: Iterable[str] = ()) -> None:
        """Read the code below `root`; `also` are files that are asked about: deleted ones too,
        and no code.
        """
        self.texts = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for folder in CODE_FOLDERS
            for path in root.glob(f"{folder}/**/*.py")
        }
        self._files = {*self.texts, *also}
        self._modules = {name_module(path): path for path in self._files if path.endswith(".py")}
        self.users: dict[str, set[str]] = defaultdict(set)
        """The files that use a file directly."""
        for path, text in self.texts.items():
            for used in {*self._find_modules(path, text), *self._find_files(path, text)} - {path}:
                self.users[used].add(path)
        if (root / _ADDED).exists():
            for used in self._find_modules(_ADDED, (root / _ADDED).read_text(encoding="utf-8")):
                self.users[used].add(_ADDING)
        for path in also:
            if tests := TESTS_OF_FOLDERS.get(path.split("/")[0]):
                self.users[path].update(each for each in self.texts if each.startswith(f"{tests}/"))
            elif (not path.endswith(".py") or "/data/" in path) and not self._has_reader(path):
                self.users[path].update(self._find_owners(path))

    def measure_distances(self, path: str) -> dict[str, int]:
        """Return the files that use a file, directly or through others,
        with the steps between (0: the file itself).
        """
        distances = {path: 0}
        waiting = deque([path])
        while waiting:
            current = waiting.popleft()
            for user in self.users[current] - distances.keys():
                distances[user] = distances[current] + 1
                waiting.append(user)
        return distances

    def _find_modules(self, path: str, text: str) -> Iterator[str]:
        """Yield the files of the modules that a text imports or names,
        with the packages around them.
        """
        names = set(_DOTTED_NAME.findall(text))
        for module, imported in _FROM_IMPORT.findall(text):
            names.update(
                f"{module}.{name}" for name in re.findall(r"\w+", _COMMENT.sub("", imported))
            )
        room = ".".join(name_module(path).split(".")[:2])
        package = ".".join(PurePosixPath(path).parent.parts).removeprefix("src.")
        for lazy in _LAZY_NAME.findall(text):
            names.update((f"codeloop.{lazy}", f"{room}.{lazy}", f"{package}.{lazy}"))
            if path.startswith(_OPERATIONS_FOLDER):
                names.add(f"{_HANDLERS}.{lazy}")
        for name in names:
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                if found := self._modules.get(".".join(parts[:end])):
                    yield found
        folder = PurePosixPath(path).parent
        while path.startswith("tests/") and folder.parts:
            yield f"{folder}/conftest.py"
            folder = folder.parent

    def _find_files(self, path: str, text: str) -> Iterator[str]:
        """Yield the files that a text names: from the root of the repository, of the package,
        or of its own folder.
        """
        starts = (
            "",
            "src/codeloop/",
            "automation/src/codeloop_automation/",
            f"{PurePosixPath(path).parent}/",
        )
        for name in set(_FILE_NAME.findall(text)):
            yield from (start + name for start in starts if start + name in self._files)

    def _has_reader(self, path: str) -> bool:
        """Return whether code of the same top folder names a file: a test that
        mentions it need not read it.
        """
        top, _, _ = path.partition("/")
        return any(user.startswith(f"{top}/") for user in self.users[path])

    def _find_owners(self, path: str) -> Iterable[str]:
        """Return the modules to which a file belongs that no code near it names."""
        file = PurePosixPath(path)
        if (module := f"{file.with_suffix('')}.py") in self.texts:
            return [module]
        for folder in list(file.parents)[:-1]:
            # What lies in a folder `data` is material, not code of ours.
            modules = (
                []
                if "data" in folder.parts
                else [each for each in self.texts if PurePosixPath(each).parent == folder]
            )
            named = [each for each in modules if f'"{file.name}"' in self.texts[each]]
            if named or any(not each.endswith("__init__.py") for each in modules):
                return named or modules
        return []
