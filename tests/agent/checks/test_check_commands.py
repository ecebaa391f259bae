"""Which command lines are checks, and which of them cover others."""

import pytest

from codeloop.shell.check_commands import find_checks, is_check

CHECKS = (
    "pytest -q",
    "cd a && .venv/bin/pytest",
    "npm test",
    "npm run lint:fix",
    "go test ./...",
    "cargo test",
    "make test",
    "python -m unittest",
    "npx tsc --noEmit",
    "./gradlew :app:test",
    "node --test",
    "sh test.sh",
    "make -j4 check",
    "hatch run test",
    "hatch run test:py",
    "npx playwright test",
    "playwright test",
    "zig build test",
    "zig build",
    "node test/run.js",
    "npx rollup -c",
    "uv run pytest -q",
    "uv run --group test pytest",
    "uv run -m pytest",
    "poetry run pytest",
    "pdm run test",
    "pdm run pytest",
    "just test",
    "task test",
    "task lint",
    "nox",
    "nox -s tests",
    "tox -e py311",
    "tox",
    "rake test",
    "rake",
    "bundle exec rspec",
    "bundle exec rake spec",
    "dotnet test",
    "gradle test",
    "mvn -q test",
    "mvn -B verify",
    "swift test",
    "mix test",
    "deno test -A",
    "deno task test",
    "bun test",
    "bun run build",
    "yarn lint",
    "pnpm build",
    "pnpm -r test",
    "pnpm --filter web test",
    "docker compose run --rm web pytest -q",
    'bash -c "cd a && pytest -q"',
    "timeout 60 pytest",
    "timeout -s KILL 60 npx jest src/a.test.js",
    "PYTHONPATH=src python3.12 -m pytest tests/x.py::test_y",
    "for i in 1 2; do pytest -x; done",
    "if pytest; then echo ok; fi",
    "(cd web && npm test)",
    "conda run -n env pytest",
    "python manage.py test",
    "python3 tests/test_x.py",
    "python run_tests.py",
    "./run_tests.sh",
    "scripts/check",
    "ruff check",
    "ruff format --check src",
    "black --check .",
    "prettier --check .",
    "bin/rails test",
    "php artisan test",
    "vendor/bin/phpunit tests",
    "composer test",
    "cmake --build build",
    "ctest --test-dir build",
    "bazel test //...",
    "sbt test",
    "flutter test",
    "coverage run -m pytest",
    "coverage run -m unittest discover",
    "python -W error -m pytest",
    "env FOO=1 pytest",
    "npx --yes vitest run",
    "pytest | tail -3",
    "nice -n 10 make test",
    "xvfb-run -a npm test",
    "python -m build",
    "yarn workspace web test",
    "npm --prefix web test",
    "npm run test -- --watch=false",
    "npx eslint .",
    "make lint types",
    "turbo run build",
    "nx test web",
    "poe test",
    "pnpm -r --filter web test",
    "x test || pytest",
)
OTHERS = (
    "cat pytest.ini",
    "grep -rn pytest .",
    "ls tests",
    "pip install pytest",
    "git log",
    "echo pytest",
    "make",
    "python3 /tmp/pytest-of-me/run.py",
    "./mocha/start",
    "python jest-report.py",
    "uv add pytest",
    "uv pip install pytest",
    "npm install jest",
    "npm i -D vitest",
    "poetry add --group test pytest",
    "which pytest",
    "pytest --version",
    "cargo add tokio",
    "cargo run",
    "go run main.go",
    "go mod tidy",
    "bun install",
    "npm run dev",
    "npm start",
    "npm run test:watch",
    "make test-deps",
    "make clean",
    "docker build -t test .",
    'git commit -m "pytest passes"',
    "git checkout -- tests/test_a.py",
    "sed -n 1,20p tests/test_a.py",
    "python tests/make_fixture.py",
    'python -c "print(1)"',
    "python setup.py develop",
    "python manage.py migrate",
    "node server.js",
    "node test/server.js",
    "mvn clean",
    "gradle tasks",
    "gradle dependencies",
    "dotnet run",
    "swift run",
    "mix deps.get",
    "deno run main.ts",
    "zig fetch",
    "task --list",
    "just --list",
    "just deploy",
    "rake db:migrate",
    "bundle install",
    "hatch env show",
    "tsx src/index.ts",
    "vite",
    "vite dev",
    "next dev",
    "rm -rf build",
    "mkdir build",
    "cd build",
    "docker run postgres",
    "ssh host ls",
    "nox --list",
    "ls | xargs cat",
    'find . -name "*test*"',
    "curl http://x/test",
    "terraform plan",
    "prettier --write .",
    "ruff format .",
    "black .",
    "playwright install",
    "poetry install",
    "pdm install",
    "tail -f test.log",
    "kubectl get pods",
    "python -m venv .venv",
    "python -m http.server",
    "test -f a.txt",
    "[ -d build ]",
    "cd test",
    "./build/app",
    "npm ci",
    "env",
    "bash",
    "python",
    'ruby -e "puts 1"',
    'sh -c "ls tests"',
    "cargo run -- test",
    "go run ./cmd test",
    "dotnet run test",
    "swift package test",
    "npm install test",
    "cargo new test",
)


@pytest.mark.parametrize("line", CHECKS)
def test_a_check_is_known_by_its_command(line: str) -> None:
    assert is_check(line)


@pytest.mark.parametrize("line", OTHERS)
def test_what_only_looks_prepares_or_runs_is_no_check(line: str) -> None:
    assert not is_check(line)


@pytest.mark.parametrize(
    "text",
    ["cat > a.sh <<'EOF'\npytest\nEOF\nls", "cat > a.sh <<EOF\nmake test\n", "cat <<EOF\nEOF\nls"],
)
def test_lines_of_a_here_document_are_no_commands(text: str) -> None:
    assert not is_check(text)
    assert not is_check("'" * 3000 + '"' * 3001 + "<<a\n" * 3000)


def test_a_command_after_a_here_document_is_one() -> None:
    assert is_check("cat > a.py <<EOF\nx\nEOF\npytest")


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("pytest", "pytest tests/test_a.py"),
        ("pytest -q", "python -m pytest tests/a.py::b"),
        ("pytest tests", "pytest -k x"),
        ("pytest", "uv run pytest -n 4 --tb short tests/unit"),
        ("pytest tests/a.py", "pytest ./tests/a.py::x"),
        ("npm test", "npx jest a.test.js"),
        ("npm test", "npm run test:unit"),
        ("yarn test", "npm test -- a.test.js"),
        ("make check", "pytest -k x"),
        ("go test ./...", "go test ./pkg -run X"),
        ("cargo test", "cargo test foo"),
        ("tox", "tox -e py311"),
        ("./gradlew test", "gradle :app:test"),
    ],
)
def test_a_wider_check_covers_a_narrower_one_and_is_not_covered_by_it(
    wide: str, narrow: str
) -> None:
    (one,), (other,) = find_checks(wide), find_checks(narrow)
    assert one.covers(other)
    assert not other.covers(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("pytest", "python3 -m pytest -q"),
            ("npm test", "npm run test"),
            ("pytest -x", "pytest ."),
        ),
        *(
            ("npx jest", "npm test"),
            ("tox", "pytest"),
            ("cargo t", "cargo nextest run --workspace"),
        ),
    ],
)
def test_the_same_check_under_another_name_covers_both_ways(one: str, other: str) -> None:
    (first,), (second,) = find_checks(one), find_checks(other)
    assert first.covers(second)
    assert second.covers(first)


@pytest.mark.parametrize(
    ("one", "other"),
    [("ruff check", "pytest"), ("mypy src", "ruff check"), ("make lint", "make test")],
)
def test_other_kinds_of_checks_do_not_cover_each_other(one: str, other: str) -> None:
    (first,), (second,) = find_checks(one), find_checks(other)
    assert not first.covers(second)
    assert not second.covers(first)
