"""The house rules that a machine can check: sizes, floors, homes, waivers, the cost of an import,
words.
"""

import ast
import io
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
# The other distribution of this repository.
AUTOMATION = ROOT / "automation" / "src"
PACKAGES = (SRC / "codeloop", AUTOMATION / "codeloop_automation")
CODE = (SRC, AUTOMATION, ROOT / "bench", ROOT / "tests")

FILE_LINES, FUNCTION_LINES, PARAMETERS = 400, 60, 7
# A class with the bases of ours that it has.
CHAIN_CLASSES = 3
COMMITTED_BYTES = 1_000_000
# Files, functions and classes that may be larger. Empty, and stays so.
EXCEPTIONS: frozenset[str] = frozenset()

# The only functions that may catch everything: "file below src/codeloop::function".
# A tool call, a follower, a handler.
BOUNDARIES = frozenset(
    {
        "agent/calls/tool_calls.py::_run",
        "app/runs.py::_drive",
        "server/application.py::_run_and_respond",
    }
)

GRAMMARS = tuple(
    f"tree_sitter_{name}"
    for name in ("c", "cpp", "go", "java", "javascript", "php", "ruby", "rust", "typescript")
)
# A framework has one home; an import anywhere else, wherever in the file, is wrong.
HOMES = {
    "textual": ("tui/",),
    "rich": ("tui/",),
    "starlette": ("server/",),
    "uvicorn": ("server/",),
    "sqlite3": ("store/", "automation/fleet/"),
    "psycopg": ("automation/fleet/",),
    "ray": ("automation/fleet/",),
    "httpx2": ("model/", "net/", "client/", "tool/web/", "extend/mcp/"),
    "mcp": ("extend/", "client/mcp_server/"),
    "pydantic_ai": ("model/",),
    "tree_sitter": ("shell/", "workspace/"),
    "tree_sitter_bash": ("shell/", "workspace/"),
    **dict.fromkeys(GRAMMARS, ("workspace/",)),
    "acp": ("acp/",),
}

# What starts a program, and what looks for one.
PROGRAM_CALLS = frozenset(
    {
        *(
            "Popen",
            "run",
            "call",
            "check_call",
            "check_output",
            "system",
            "popen",
            "posix_spawn",
            "execv",
            "execve",
        ),
        *(
            "create_subprocess_exec",
            "create_subprocess_shell",
            "run_program",
            "ChildProcess",
            "Launch",
        ),
        *("make_desktop_launch", "spawn", "find_program", "which"),
    }
)
# The files that start git, each with a git directory that codeloop made (`kit/git/own_folder.py`;
# its own snapshots; the one without logs by which the work of sandboxed commands is carried over).
GIT_CALLERS = frozenset(
    {
        *(
            "workspace/git/repository.py",
            "workspace/snapshot/shared_blobs.py",
            "config/project_root.py",
        ),
        *("automation/command_lines.py", "workspace/git/private/own_git.py"),
    }
)

# Costly to import, so imported by the function that first needs them.
# `codeloop run` pays for what it uses.
HEAVY = frozenset(
    {
        "PIL",
        "acp",
        "anyio",
        "h11",
        "html_to_markdown",
        "pypdf",
        "httpcore2",
        "httpx2",
        "jiter",
        "mcp",
        "pydantic",
        "pydantic_ai",
        "rapidfuzz",
        "pygments",
        "ray",
        "rich",
        "starlette",
        "textual",
        "tree_sitter",
        "tree_sitter_bash",
        *GRAMMARS,
        "truststore",
        "uvicorn",
        "watchfiles",
        "websockets",
        "yaml",
    }
)
# Rooms whose classes derive from a framework's, each with the one module that
# imports it: its own command.
FRAMEWORK_ROOMS = {
    "tui": "cli/terminal_ui.py",
    "server": "cli/commands/serve.py",
    "acp": "cli/commands/acp.py",
}

# Imports are statements, at the top or in the function that first needs them. Only these tables
# name what their rows need by strings, `room.module:name` (in `cli`, `tui` and `server/version2`
# also `module:name`), for `kit/lazy.py` to import. Handlers are named in the rows of operations, in
# `schema/api/`; `app/dispatch.py` loads them.
TABLES = {
    "app/dispatch.py",
    "app/toolbox.py",
    "cli/command_table.py",
    "model/credentials/environment.py",
    "model/providers.py",
    "server/version2/catalog_rows.py",
    "server/version2/session_rows.py",
    "server/version2/workspace_rows.py",
    "tool/search_providers.py",
    "tui/commands.py",
}
TARGET = re.compile(r"(?:[a-z_]\w*\.)*[a-z_]\w*:[A-Za-z_]\w*")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def python_files(*roots: Path) -> list[Path]:
    """Return the code below `roots`; what lies in a folder `data` is material (a demo project),
    not code of ours.
    """
    return sorted(
        path
        for root in roots
        for path in root.rglob("*.py")
        if "data" not in path.relative_to(ROOT).parts
    )


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room_path(path: Path) -> str:
    """Return the path of a module below its package; that of the other distribution stands before
    it as `automation/`.
    """
    if path.is_relative_to(PACKAGES[1]):
        return f"automation/{path.relative_to(PACKAGES[1]).as_posix()}"
    return path.relative_to(PACKAGES[0]).as_posix()


def module_name(path: Path) -> str:
    """Return the dotted name of a module of either distribution."""
    base = AUTOMATION if path.is_relative_to(AUTOMATION) else SRC
    return ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")


def repository_files() -> list[str]:
    """Return the name of every file that git would commit."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def repository_text() -> Iterator[tuple[str, str]]:
    """Yield the name and text of every text file that git would commit."""
    for name in repository_files():
        try:
            yield name, (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_nothing_that_was_downloaded_or_built_is_committed() -> None:
    large = {
        name: size
        for name in repository_files()
        if (size := (ROOT / name).stat().st_size) > COMMITTED_BYTES
    }
    assert large == {}


# A row of a table of limits begins so; the formatter gives it up to six lines.
_LIMIT_ROW = re.compile(r"[A-Z_\d]+ = Limit\($")


def count_lines(lines: list[str]) -> int:
    """Count all lines but those that hold a comment alone: a limit on them would pay
    for leaving the reason out. A limit's row counts once.
    """
    count, in_row = 0, False
    for line in lines:
        count += not line.lstrip().startswith("#") and not in_row
        in_row = line != ")" and (in_row or bool(_LIMIT_ROW.match(line)))
    return count


def test_files_stay_short() -> None:
    lines = {
        name_of(path): count_lines(path.read_text(encoding="utf-8").splitlines())
        for path in python_files(SRC, AUTOMATION, ROOT / "bench")
    }
    assert {
        name: count
        for name, count in lines.items()
        if count > FILE_LINES and name not in EXCEPTIONS
    } == {}


def test_functions_stay_short() -> None:
    long = {
        f"{name_of(path)}::{node.name}": length
        for path in python_files(SRC, AUTOMATION, ROOT / "bench")
        for lines in [path.read_text(encoding="utf-8").splitlines()]
        for node in ast.walk(tree(path))
        if isinstance(node, Function)
        and (length := count_lines(lines[node.lineno - 1 : node.end_lineno])) > FUNCTION_LINES
    }
    assert {name: length for name, length in long.items() if name not in EXCEPTIONS} == {}


def parameters(function: Function) -> int:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return sum(argument is not None and argument.arg not in {"self", "cls"} for argument in named)


def test_functions_take_few_parameters() -> None:
    wide = {
        f"{name_of(path)}::{node.name}": parameters(node)
        for path in python_files(SRC, AUTOMATION)
        for node in ast.walk(tree(path))
        if isinstance(node, Function) and parameters(node) > PARAMETERS
    }
    assert {name: count for name, count in wide.items() if name not in EXCEPTIONS} == {}


Named = tuple[str, str]  # a module and a name in it


@cache
def imported_names(module: str) -> dict[str, Named]:
    """Return where each name that a module of ours imports comes from."""
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.walk(module_trees()[module])
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def module_trees() -> dict[str, ast.Module]:
    return {module_name(path): tree(path) for path in python_files(*PACKAGES)}


@cache
def classes() -> dict[Named, ast.ClassDef]:
    return {
        (module, node.name): node
        for module, parsed in module_trees().items()
        for node in parsed.body
        if isinstance(node, ast.ClassDef)
    }


def find_own_bases(name: Named) -> list[Named]:
    """Return a class with its bases of ours."""
    own = [name]
    for base in classes()[name].bases:
        expression = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(expression, ast.Name):
            found = imported_names(name[0]).get(expression.id, (name[0], expression.id))
            own += find_own_bases(found) if found in classes() else []
    return list(dict.fromkeys(own))


def test_inheritance_is_shallow() -> None:
    """What a class inherits has to be read with it."""
    deep = {
        ".".join(name): len(own)
        for name in classes()
        if len(own := find_own_bases(name)) > CHAIN_CLASSES
    }
    assert deep == {}


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for path in python_files(SRC, AUTOMATION):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name_of(path))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


WAIVER = re.compile(
    r"\bnoqa\b|type:\s*ignore|pyright:\s*ignore|ruff:\s*(?:noqa|ignore)|\b(?:TODO|FIXME|XXX|HACK)\b"
)


def test_no_check_is_waived_and_nothing_is_left_to_do() -> None:
    found: list[str] = []
    for path in python_files(*CODE):
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        found += [
            f"{name_of(path)}:{token.start[0]}: {token.string}"
            for token in tokens
            if token.type == tokenize.COMMENT and WAIVER.search(token.string)
        ]
    assert found == []


def broad(caught: ast.expr | None) -> bool:
    match caught:
        case None:
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in {"Exception", "BaseException"}
        case ast.Tuple(elts=members):
            return any(broad(member) for member in members)
        case _:
            return False


def broad_catches(node: ast.AST, function: str = "") -> Iterator[tuple[str, int]]:
    """Yield the function and the line of everything below `node` that catches every exception."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, Function) else function
        match child:
            case ast.ExceptHandler(type=caught) if broad(caught):
                yield inside, child.lineno
            case ast.Call(
                func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args
            ) if any(map(broad, args)):
                yield inside, child.lineno
            case _:
                pass
        yield from broad_catches(child, inside)


def test_only_the_three_boundaries_catch_everything() -> None:
    assert len(BOUNDARIES) <= 3
    found = {
        f"{room_path(path)}::{function}": line
        for path in python_files(*PACKAGES)
        for function, line in broad_catches(tree(path))
    }
    assert {where: line for where, line in found.items() if where not in BOUNDARIES} == {}
    assert set(found) == BOUNDARIES, "a boundary that is named but not there"


# What writes with other means than `kit/new_file.py`,
# into folders of its own making or standard streams, and why.
WRITERS = {
    "automation/ci/job_repository.py": "a bare repository in the job's temporary folder",
    "automation/ci/review/review_runner.py": "the job's temporary folder",
    "automation/fleet/job_attempt.py": "the job's own folder",
    "automation/fleet/kubernetes/cluster_access.py": "a temporary folder",
    "automation/fleet/kubernetes/driver.py": "the job's own folder",
    "automation/fleet/local_driver.py": "the job's own folder, which a process writes to",
    "automation/fleet/pull_requests.py": "a bare repository in the fleet's folder",
    "automation/fleet/remote/messages.py": "the job's own folder",
    "automation/fleet/remote/ray_driver.py": "the job's own folder",
    "automation/fleet/remote/ssh_driver.py": "the job's own folder, which a process writes to",
    "automation/fleet/remote/worker.py": "the worker's own folder, which a process writes to",
    "cli/commands/extend/lsp.py": "the folder of installed language servers",
    "cli/bootstrap.py": "/dev/null, in place of a closed stream",
    "cli/output/streams.py": "the terminal",
    "cli/target/process_log.py": "the log, which is appended to; it has its own flags against links",
    "cli/commands/serve.py": "/dev/null",
}


def writes(node: ast.AST) -> bool:
    """Return whether a call writes a file by its name."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    texts = [
        each.value
        for each in (*node.args, *(word.value for word in node.keywords))
        if isinstance(each, ast.Constant)
    ]
    is_mode = any(
        isinstance(text, str) and re.fullmatch(r"[rwaxbt+]*[wax+][rwaxbt+]*", text)
        for text in texts
    )
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_os = (
        name == "open"
        and isinstance(of, ast.Name)
        and of.id == "os"
        and "O_RDONLY" not in ast.unparse(node)
    )
    return name in {"write_text", "write_bytes", "touch"} or (
        name in {"open", "File", "fdopen"} and (is_mode or is_os)
    )


def test_files_for_the_user_and_for_ci_are_written_by_one_function() -> None:
    found = {
        room_path(path)
        for folder in (PACKAGES[0] / "cli", PACKAGES[1], PACKAGES[0] / "client")
        for path in python_files(folder)
        if any(map(writes, ast.walk(tree(path))))
    }
    assert found - WRITERS.keys() == set(), (
        "write with `open_new_file` or `write_new_file` of kit/new_file.py"
    )
    assert WRITERS.keys() - found == set(), "listed, but writes nothing any more"


def imports(node: ast.AST, *, deferred: bool) -> Iterator[tuple[str, int]]:
    """Yield the top package and line of each import;
    without `deferred`, only of those run with the module.
    """
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                for alias in names:
                    yield alias.name.partition(".")[0], child.lineno
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0], child.lineno
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if not deferred:
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not deferred:
                pass
            case _:
                yield from imports(child, deferred=deferred)


def test_one_function_removes_trees() -> None:
    """The library's own fails on what sandboxed programs leave: folders without permissions,
    and very deep ones.
    """
    uses = re.compile(r"\b(?:rmtree|removedirs|TemporaryDirectory)\(")
    files = [
        path for folder in ("src", "automation", "bench") for path in (ROOT / folder).rglob("*.py")
    ]
    assert [str(path) for path in files if uses.search(path.read_text())] == []


def test_a_framework_is_imported_in_its_own_rooms_only() -> None:
    strays = [
        f"{name_of(path)}:{line}: {package}"
        for path in python_files(*PACKAGES)
        for package, line in imports(tree(path), deferred=True)
        if package in HOMES and not room_path(path).startswith(HOMES[package])
    ]
    assert strays == []


def test_heavy_libraries_are_never_imported_at_module_top() -> None:
    eager = [
        f"{name_of(path)}:{line}: {package}"
        for path in python_files(*PACKAGES)
        if room_path(path).partition("/")[0] not in FRAMEWORK_ROOMS
        for package, line in imports(tree(path), deferred=False)
        if package in HEAVY
    ]
    assert eager == []


def loaded_after(statement: str) -> set[str]:
    """Return the top packages that a fresh interpreter holds after `statement`."""
    program = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_starting_the_command_line_loads_no_heavy_library() -> None:
    assert (
        loaded_after("import codeloop.cli.main") & (HEAVY | {"asyncio", "sqlite3", "ssl"}) == set()
    )


def test_importing_every_room_but_those_of_a_framework_loads_no_heavy_library() -> None:
    modules = [
        module_name(path)
        for path in python_files(*PACKAGES)
        if room_path(path).partition("/")[0] not in FRAMEWORK_ROOMS
        and room_path(path) not in FRAMEWORK_ROOMS.values()
        and path.name != "__main__.py"
    ]
    assert loaded_after("\n".join(f"import {module}" for module in modules)) & HEAVY == set()


@cache
def module_imports() -> dict[str, set[str]]:
    """Return which modules of ours each module imports, wherever in the file the import stands."""
    modules = {module_name(path): path for path in python_files(*PACKAGES)}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        found[name] = {
            full if (full := f"{node.module}.{alias.name}") in modules else str(node.module)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("codeloop")
            for alias in node.names
        } - {name}
    return found


@cache
def late_imports() -> dict[str, set[tuple[str, str]]]:
    """Return what each module names for `load`: module and name.
    Strings of another meaning name no module of ours.
    """
    modules = module_imports().keys()
    found: dict[str, set[tuple[str, str]]] = {name: set() for name in modules}
    for path in python_files(*PACKAGES):
        own = module_name(path)
        bases = (
            "codeloop",
            *(
                room
                for room in ("codeloop.cli", "codeloop.tui", "codeloop.server.version2")
                if own.startswith(f"{room}.")
            ),
        )
        if own.startswith("codeloop.schema.api"):
            own, bases = "codeloop.app.dispatch", ("codeloop.app.handlers",)
        if own.startswith("codeloop.server.version2"):
            bases = ("codeloop.server.version2",)
        texts = [node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)]
        targets = [
            text.split(":") for text in texts if isinstance(text, str) and TARGET.fullmatch(text)
        ]
        loaded = {
            (full, name)
            for module, name in targets
            for base in bases
            if (full := f"{base}.{module}") in modules
        }
        found[own] |= loaded
    return found


def test_what_is_loaded_by_name_is_there() -> None:
    wanted = {target for targets in late_imports().values() for target in targets}
    assert len(wanted) > 50, "the tables are not found any more"
    missing = [
        f"{module}:{name}" for module, name in wanted if not hasattr(import_module(module), name)
    ]
    assert missing == []


def test_what_is_loaded_by_name_is_not_above() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    rooms = [{room.strip(" ()") for room in layer.split("|")} for layer in contract[0]["layers"]]
    floors = {room: len(rooms) - number for number, layer in enumerate(rooms) for room in layer}
    wrong = [
        f"{importer} loads {module}"
        for importer, targets in late_imports().items()
        for module, _ in targets
        if (own := importer.split(".")[1]) != (room := module.split(".")[1])
        and floors[room] >= floors[own]
    ]
    assert wrong == []


def test_no_import_leads_back_to_where_it_came_from() -> None:
    late = {
        importer: {module for module, _ in targets if not module.startswith("codeloop.cli.")}
        for importer, targets in late_imports().items()
    }
    try:
        TopologicalSorter(
            {name: found | late[name] for name, found in module_imports().items()}
        ).prepare()
    except CycleError as error:
        pytest.fail(f"an import circle: {' -> '.join(error.args[1])}")


def test_a_framework_room_is_imported_by_its_own_command_only() -> None:
    strays = [
        f"{importer} imports {module}"
        for importer, imported in module_imports().items()
        for module in imported
        if (room := module.split(".")[1:2]) and room[0] in FRAMEWORK_ROOMS
        if importer.split(".")[1:2] != room
        and f"{importer.removeprefix('codeloop.').replace('.', '/')}.py" != FRAMEWORK_ROOMS[room[0]]
    ]
    assert strays == []


def test_imports_by_string_are_those_of_the_tables() -> None:
    files = {
        f"{module.removeprefix('codeloop.').replace('.', '/')}.py"
        for module, rows in late_imports().items()
        if rows
    }
    assert files == TABLES
    callers = {
        room_path(path)
        for path in python_files(*PACKAGES)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Name | ast.Attribute)
        if (node.id if isinstance(node, ast.Name) else node.attr) in {"import_module", "__import__"}
    }
    # A module of the interpreter that has no stubs; a plugin, which the configuration names.
    assert callers == {"kit/lazy.py", "cli/bootstrap.py", "extend/host/python/loading.py"}


def test_a_late_import_is_of_a_module_that_is_not_loaded_already() -> None:
    useless = [
        f"{name_of(path)}:{node.lineno} imports {node.module}"
        for path in python_files(*PACKAGES)
        for top in [{each.module for each in tree(path).body if isinstance(each, ast.ImportFrom)}]
        for outer in ast.walk(tree(path))
        if isinstance(outer, Function)
        for node in ast.walk(outer)
        if isinstance(node, ast.ImportFrom)
        and str(node.module).startswith(("codeloop.", "codeloop_automation."))
        and node.module in top
    ]
    assert useless == []


def called_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def names_git(node: ast.AST) -> bool:
    """Whether a node is git as a program: its name or path, a command line that begins with it,
    a search for it.
    """
    if isinstance(node, ast.List | ast.Tuple):
        return any(names_git(each) for each in node.elts[:1])
    if isinstance(node, ast.Call):
        return called_name(node) in PROGRAM_CALLS and any(names_git(each) for each in node.args)
    return (
        isinstance(node, ast.Constant)
        and re.fullmatch(r"(/.*/)?git( .*)?", str(node.value)) is not None
    )


# What starts processes without `kit/child_process.py`, and why.
STARTERS = {
    "cli/main.py": "becomes the same program in UTF-8 mode, before anything is loaded",
    "automation/fleet/local_driver.py": "a thread of the fleet; its output is a file, and outlives it",
    "automation/fleet/remote/ray_driver.py": "runs on a node, maybe without codeloop",
    "automation/fleet/remote/ssh_driver.py": "a thread of the fleet, which writes and reads by turns",
    "tui/terminal/terminal_driver.py": "its watcher waits for the end of this process",
    "workspace/sandbox/launcher/": "the launcher, which itself is started there",
}
# What waits for a short program in a function without asyncio (`subprocess.run`).
WAITERS = {
    *(
        "app/doctor/machine_checks.py",
        "automation/ci/setup_file/install_source.py",
        "config/project_root.py",
    ),
    *(
        "client/notification.py",
        "automation/schedule/timers.py",
        "cli/commands/extend/installer.py",
    ),
    *("extend/host/javascript/runtime.py", "kit/processes.py", "workspace/git/private/own_git.py"),
    *("workspace/sandbox/launcher/descendants.py", "workspace/snapshot/shared_blobs.py"),
}
# What starts programs through the launcher. Each ends them when it is closed.
LAUNCHER_OWNERS = {
    *(
        "workspace/process/program_sandboxes.py",
        "workspace/process/shells.py",
        "workspace/terminal/terminals.py",
    ),
}
PROCESS_CALL = re.compile(
    r"(?:subprocess\.)?Popen|(?:asyncio\.)?create_subprocess_\w+|os\.(?:fork|forkpty"
    r"|posix_spawnp?|exec\w+|spawn\w+|system|popen)"
    r"|pty\.(?:fork|spawn)"
)


def find_calls(pattern: re.Pattern[str]) -> set[str]:
    """Return the files with a call of a function whose whole name matches."""
    return {
        room_path(path)
        for path in python_files(*PACKAGES)
        if any(
            isinstance(node, ast.Call) and pattern.fullmatch(ast.unparse(node.func))
            for node in ast.walk(tree(path))
        )
    }


def test_one_class_starts_processes() -> None:
    """A program is started with a `Launch`, run by `run_program` or talked to as a
    `Program` (kit/program.py).
    """
    found = find_calls(PROCESS_CALL) - {"kit/child_process.py"}
    assert {name for name in found if not name.startswith(tuple(STARTERS))} == set()
    assert {each for each in STARTERS if not any(name.startswith(each) for name in found)} == set()
    assert find_calls(re.compile(r"subprocess\.(?:run|call|check_call|check_output)")) == WAITERS
    assert find_calls(re.compile(r"ProcessLauncher")) == LAUNCHER_OWNERS


def test_a_program_that_is_started_elsewhere_gets_that_directory_as_pwd() -> None:
    """Some programs work in PWD instead of their working directory: it must
    not be that of codeloop.
    """
    starts = [
        (room_path(path), {each.arg: ast.unparse(each.value) for each in node.keywords})
        for path in python_files(*PACKAGES)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("subprocess.")
    ]
    elsewhere = {(name, values.get("env", "")) for name, values in starts if "cwd" in values}
    assert len(elsewhere) > 5
    right = re.compile(r"make_child_environment|process_environment|'PWD'")
    assert {name for name, environment in elsewhere if not right.search(environment)} == set()


def test_one_function_starts_git() -> None:
    """Each call gets a git directory of codeloop's own: a real one names programs,
    hooks and further files.
    """
    searching, calling = set[str](), set[str]()
    for path in python_files(*PACKAGES):
        nodes = list(ast.walk(tree(path)))
        if any(isinstance(node, ast.Call) and names_git(node) for node in nodes):
            searching.add(room_path(path))
        if any(
            isinstance(node, ast.Call) and called_name(node) == "make_git_call" for node in nodes
        ):
            calling.add(room_path(path))
        lines = [node for node in nodes if isinstance(node, ast.List) and names_git(node)]
        assert lines == [], f"{name_of(path)} puts a command line of git together"
    assert searching == {"kit/git/__init__.py"}
    assert calling == GIT_CALLERS


def test_every_room_has_a_floor_and_no_import_goes_up() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "ignore_imports" not in text, "the floors have no exceptions"
    lint = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert lint, "lint-imports is not installed beside this Python; run `make venv`"
    done = subprocess.run(
        [lint, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_folder_of_the_package_is_a_room() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = wanted["tool"]["importlinter"]["contracts"][0]
    rooms = {room.strip(" ()") for layer in contract["layers"] for room in layer.split("|")}
    found = {path.parent.name for path in (SRC / "codeloop").glob("*/__init__.py")}
    assert found - rooms == set()
    single = {path.stem for path in (SRC / "codeloop").glob("*.py")} - {"__init__", "__main__"}
    assert single == set(), "a module outside of every room"


# Places of one machine, and set-up that only works there.
# Written so that this file does not contain them.
PLACES = re.compile(
    r"(?<![\w.~-])/(?:work|root)/|/opt/(?:pypi|wheels)|(?:index|extra|find)-(?:index-)?(?:url|links)[= ]"
)


def test_no_file_names_a_place_of_one_machine() -> None:
    found = [
        f"{name}: {hit.group()}"
        for name, text in repository_text()
        if name != "tests/test_house.py" and (hit := PLACES.search(text))
    ]
    assert found == []


def test_every_file_of_ours_that_the_documentation_names_is_there() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    missing = [
        f"{name_of(page)}: {path}"
        for page in pages
        for path in re.findall(
            r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)(?:::\w+)?`", page.read_text(encoding="utf-8")
        )
        if not any((home / path).is_file() for home in (ROOT, PACKAGES[0], AUTOMATION))
    ]
    assert missing == []


def test_a_file_that_the_map_names_without_its_folder_is_in_that_of_the_file_before() -> None:
    missing: list[str] = []
    for row in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines():
        folder: Path | None = None
        for name in re.findall(r"`([\w./-]+)`", row):
            if "/" in name:
                path = next(
                    (
                        home / name
                        for home in (PACKAGES[0], AUTOMATION, ROOT)
                        if (home / name).exists()
                    ),
                    ROOT / name,
                )
                folder = path if path.is_dir() else path.parent
            elif (
                folder
                and re.fullmatch(r"\w+\.(py|mjs|tsx?)", name)
                and not (folder / name).is_file()
            ):
                missing.append(f"{name} in: {row}")
    assert missing == []


def test_each_decision_has_a_number_a_date_and_its_row_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    rows: list[str] = []
    for number, page in enumerate(sorted(folder.glob("0*.md")), 1):
        found = re.match(
            r"# (\d{4}): (.+)\n\n(Accepted|Replaced) on ([\d-]{10})\.",
            page.read_text(encoding="utf-8"),
        )
        assert found is not None, page.name
        assert found[1] == page.name[:4] == f"{number:04}"
        rows.append(f"| [{found[1]}]({page.name}) | {found[2]} | {found[3].lower()} | {found[4]} |")
    assert [line for line in index.splitlines() if line.startswith("| [")] == rows


def test_the_lock_names_only_the_public_index() -> None:
    hosts = set(
        re.findall(r"(?:https?|file)://([^/\"\s]*)", (ROOT / "uv.lock").read_text(encoding="utf-8"))
    )
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_what_pip_installs_is_what_uv_locks() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    locked = {
        package["name"]: package.get("version")
        for package in lock["package"]
        if package["name"] not in {"codeloop", "codeloop-automation"}
    }
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = wanted["dependency-groups"]
    program = [*wanted["project"]["dependencies"], *groups["build"]]
    developer = [*program, *(name for name in groups["dev"] if name != {"include-group": "build"})]
    for file, names in (("requirements.txt", program), ("requirements-dev.txt", developer)):
        text = (ROOT / file).read_text(encoding="utf-8")
        pinned = dict(re.findall(r"^([a-z0-9-]+)==([^\s;\\]+)", text, re.MULTILINE))
        assert pinned.items() <= locked.items(), "run `make lock`"
        assert {re.split(r"[<>=\[ ]", name)[0] for name in names} <= pinned.keys(), (
            "run `make lock`"
        )
    assert "pytest" not in (ROOT / "requirements.txt").read_text(encoding="utf-8"), (
        "of no use to the demo"
    )


@pytest.mark.parametrize("target", ["demo", "test", "check", "bench"])
def test_make_sets_the_environment_up_for_each_target(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ready = "PROGRAM_READY" if target == "demo" else "READY"
    assert re.search(rf"^{target}: \$\({ready}\)", makefile, re.MULTILINE)
