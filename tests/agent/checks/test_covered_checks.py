"""A check that failed and passes under another name, with other targets or in another folder,
needs no reminder.
"""

from pathlib import Path

import pytest

from codeloop.agent.checks.check_problems import find_check_problem, find_failure
from codeloop.agent.checks.check_runs import list_checks
from tests.agent.checks.test_honest_ends import bash

ROOT = "/home/me/shop"

# What failed, and what passes later and has it.
COVERED = (
    # dotted names
    ("python -m unittest tests.a.T.test_b", "python -m unittest tests.a.T"),
    ("python -m unittest tests.a.T.test_b", "python -m unittest tests.a"),
    ("python -m unittest tests.a.T.test_b", "python -m unittest"),
    ("python -m unittest tests.a tests.b", "python -m unittest discover"),
    ("python -m unittest tests.dialects.test_a", "python -m unittest discover -s tests/dialects -t ."),
    ("python -m unittest tests.dialects.test_a", "python -m unittest discover -s tests"),
    ("python -m unittest tests.dialects.test_a", "python -m unittest discover tests/dialects"),
    ("python -m unittest tests.test_a", "python -m unittest discover -s tests -p 'test*.py'"),
    ("cd tests && python -m unittest test_a", "python -m unittest tests.test_a"),
    ("pytest --pyargs p.tests.a", "pytest --pyargs p"),
    ("python manage.py test app.tests.T", "python manage.py test app"),
    ("python manage.py test app.tests.T", "python manage.py test"),
    # another runner of the same files
    ("python -m unittest tests.test_a", "pytest tests/test_a.py"),
    ("python -m unittest tests.test_a.T.test_f", "pytest tests/test_a.py::T"),
    ("pytest tests/test_a.py::T::test_f", "python -m unittest tests.test_a"),
    ("pytest tests/test_a.py", "python -m unittest discover"),
    ("python3 tests/test_a.py", "pytest tests"),
    ("pytest -q", "uv run nox"),
    ("node --test test/a.test.js", "npx borp"),
    ("npx jest src/a.test.js", "npx vitest run"),
    # patterns, and words that are not targets
    ("npx vitest run src/a.test.ts", "npx vitest run"),
    ("npx vitest src/a.test.ts", "npx vitest run src"),
    ("npx vitest run src/lib/a.test.ts", "npx vitest run a.test"),
    ("node --test test/a.test.js", "node --test 'test/**/*.test.js'"),
    ("node --test test/a.test.js", "node --test 'test/*.test.js'"),
    ("node --test test/a.test.js", "node --test"),
    ("node --test", "node --test 'test/**/*.test.js'"),
    ("npx mocha test/unit/a.js", "npx mocha 'test/{unit,e2e}/*.js'"),
    # packages with all below them
    ("go test ./pkg/foo", "go test ./pkg/..."),
    ("go test ./pkg/foo", "go test ./..."),
    ("go test -run TestA/sub ./pkg/foo", "go test ./pkg/foo -run TestA"),
    ("go test -run TestA ./pkg/foo", "go test ./pkg/foo -run 'TestA|TestB'"),
    ("go test example.com/shop/pkg/foo", "go test ./pkg/foo"),
    ("cd pkg && go test ./foo", "go test ./pkg/..."),
    ("go build ./...", "go test ./..."),
    ("cargo build", "cargo test"),
    ("cargo test parser::tests::a", "cargo test parser"),
    ("cargo test -p core", "cargo test --workspace"),
    ("bazel test //core:all", "bazel test //..."),
    # a line of a file
    ("rspec spec/a_spec.rb:12", "rspec spec/a_spec.rb"),
    ("bundle exec rspec ./spec/a_spec.rb:12:3", "bin/rspec spec"),
    ("mix test test/a_test.exs:4", "mix test test/a_test.exs"),
    # filters
    ("pytest -k test_tax", "pytest -k tax"),
    ("pytest -k test_tax", "pytest -k 'sum or tax'"),
    ("pytest tests/a.py::test_tax", "pytest tests/a.py -k test_tax"),
    ("pytest tests/a.py -k test_tax", "pytest tests/a.py"),
    ("npx jest -t 'adds two'", "npx jest -t adds"),
    # modules, workspaces, folders
    ("./gradlew :core:test", "./gradlew check"),
    ("./gradlew :core:test", "./gradlew :core:check"),
    ("./gradlew :core:test --tests A", "gradle test"),
    ("mvn -q test -Dtest=A", "mvn verify"),
    ("npm test -w web", "npm test"),
    ("npm test -w web", "npm test --workspaces"),
    ("npm test -w web", "cd packages/web && npm test"),
    ("cd packages/web && npm test", "npm test --workspace=packages/web"),
    ("yarn workspace web test", "yarn test"),
    ("pnpm --filter @shop/web test", "pnpm -r test"),
    ("cd web && npm test", "npm --prefix web test"),
    ("cd web && npx jest a.test.js", "npm --prefix web test"),
    ("make -C build test", "ctest --test-dir build"),
    ("cd build && make test", "ctest --test-dir build"),
    ("cd build && ctest -R tax", "ctest --test-dir build"),
    ("make -C build test", "cd build && make test"),
    ("cd tests && node --test t/a.test.js", "node --test tests/t/a.test.js"),
    ("cd tests && pytest unit/test_a.py", "pytest tests/unit"),
    # tasks
    ("npm run lint", "npm run lint:fix"),
    ("npm test", "npm run test:ci"),
    ("npm run test:unit", "npm test"),
    ("npm test -- a.test.js", "npm test"),
    ("npx eslint lib", "npm run lint"),
    ("npm run typecheck", "npx tsc --noEmit"),
    ("ruff check", "make check"),
    # the same in other ecosystems
    ("bun test a.test.ts", "bun test"),
    ("deno test a_test.ts", "deno test"),
    ("npx vitest run src/a.test.ts", "pnpm test"),
    ("npx jest src/a.test.ts -t foo", "npx jest"),
    ("npx jest a", "npm test"),
    ("npx mocha test/a.js -g x", "npx mocha"),
    ("npx ava test/a.js", "npx ava"),
    ("npx ava test/a.js --match=foo", "npx ava test/a.js"),
    ("node --test --test-name-pattern=x test/a.js", "node --test test/a.js"),
    ("ctest -R foo", "ctest"),
    ("ctest --test-dir build -R foo", "ctest --test-dir build"),
    ("cd build && ctest -R foo", "ctest --test-dir build"),
    ("dotnet test --filter Foo", "dotnet test"),
    ("dotnet test tests/A.csproj", "dotnet test"),
    ("./gradlew test --tests Foo", "./gradlew test"),
    ("./gradlew :app:test", "./gradlew test"),
    ("gradle test", "./gradlew check"),
    ("mvn test -Dtest=Foo", "mvn test"),
    ("mvn -pl core test", "mvn verify"),
    ("mvn -q test -Dtest=FooTest#bar", "mvn test -Dtest=FooTest"),
    ("rspec spec/a_spec.rb:12", "bundle exec rspec"),
    ("rspec spec/a_spec.rb -e foo", "rspec spec/a_spec.rb"),
    ("phpunit --filter testA tests/ATest.php", "vendor/bin/phpunit"),
    ("phpunit tests/ATest.php", "composer test"),
    ("mix test test/a_test.exs:3", "mix test"),
    ("swift test --filter FooTests", "swift test"),
    ("zig build test", "zig build test --summary all"),
    ("zig test src/a.zig", "zig build test"),
    ("nox -s tests", "nox"),
    ("nox -s tests-3.11", "nox"),
    ("tox -e py311", "tox"),
    ("tox -e py311 -- tests/test_a.py", "tox -e py311"),
    ("hatch run test tests/test_a.py", "hatch run test"),
    ("hatch test tests/test_a.py", "hatch test"),
    ("uv run pytest tests/test_a.py::test_x", "uv run pytest"),
    ("uv run pytest tests/test_a.py", ".venv/bin/python -m pytest"),
    ("poetry run pytest -k foo", "poetry run pytest"),
    ("make test-unit", "make test"),
    ("make test", "make check"),
    ("make -C sub test", "make test"),
    ("just test foo", "just test"),
    ("just test", "cargo test"),
    ("go test ./pkg/foo -run TestA", "go test ./..."),
    ("go test -run TestA/sub ./pkg", "go test ./pkg"),
    ("go test ./pkg -run 'TestA$'", "gotestsum ./..."),
    ("cargo test foo::bar", "cargo test"),
    ("cargo test --lib", "cargo test"),
    ("cargo nextest run -E 'test(foo)'", "cargo nextest run"),
    ("cargo test --test integration", "cargo test"),
    ("pytest tests/test_a.py::TestX::test_y", "python -m pytest tests"),
    ("python -m pytest tests/test_a.py", "python -m unittest discover"),
    ("python tests/test_a.py", "pytest tests/test_a.py"),
    ("pytest tests/a -x", "pytest tests"),
    ("pytest -n 4 tests/a", "pytest tests/a"),
    ("pnpm --filter web test", "pnpm -r test"),
    ("npx tsc --noEmit", "npx tsc -b"),
    ("npx tsc -p tsconfig.json", "npm run typecheck"),
    ("mypy src/a.py", "mypy ."),
    ("mypy src/a.py", "mypy src"),
    ("pyright src/a.py", "pyright"),
    ("npx eslint src/a.ts", "npm run lint"),
    ("npx eslint src/a.ts", "npx eslint ."),
    ("ruff check src/a.py", "ruff check"),
    ("ruff check src/a.py", "make lint"),
    ("golangci-lint run ./pkg", "golangci-lint run"),
    ("cargo check", "cargo build"),
    ("cargo build --release", "cargo build"),
    ("cargo clippy", "cargo clippy --all-targets"),
    ("cargo check", "cargo clippy"),
    ("go build ./cmd/x", "go build ./..."),
    ("go vet ./pkg", "go vet ./..."),
    ("cmake --build build --target foo", "cmake --build build"),
    ("npm run build", "npm run build -- --mode production"),
    ("dart test test/a_test.dart", "dart test"),
    ("flutter test test/a_test.dart", "flutter test"),
    ('sbt "testOnly Foo"', "sbt test"),
    ("lein test :only a.b", "lein test"),
    ("rebar3 eunit --module=a", "rebar3 eunit"),
    ("stack test pkg:test", "stack test"),
    ("cabal test foo", "cabal test all"),
    ("bundle exec rake test TEST=test/a_test.rb", "bundle exec rake test"),
    ("bin/rails test test/models/a_test.rb:4", "bin/rails test"),
    ("ruby -Itest test/a_test.rb", "rake test"),
    ("ruby -Itest test/a_test.rb -n test_x", "ruby -Itest test/a_test.rb"),
    ("prove t/a.t", "prove -r t"),
    ("bats test/a.bats", "bats test"),
    ("crystal spec spec/a_spec.cr", "crystal spec"),
    ("bazel test //a:b", "bazel test //..."),
    ("npx playwright test a.spec.ts", "npx playwright test"),
    ("npx cypress run --spec a", "npx cypress run"),
    ("busted spec/a_spec.lua", "busted"),
    ("julia --project test/runtests.jl", "julia --project test/runtests.jl"),
    ("./run_tests.sh a", "./run_tests.sh"),
    ("python run_tests.py a", "python run_tests.py"),
    ("python manage.py test app.tests.A", "python manage.py test"),
    ("meson test -C build foo", "meson test -C build"),
    ("ninja -C build test", "meson test -C build"),
    ("npx nx test web", "npx nx run-many -t test"),
    ("npx turbo run test --filter=web", "npx turbo run test"),
    ("deno task test", "deno test"),
    ("bun run test", "bun test"),
    ("pdm run pytest a", "pdm run pytest"),
    ("pipenv run pytest tests/test_a.py", "pytest"),
    ("docker compose run web pytest tests/a", "docker compose run web pytest"),
    ('bash -c "pytest tests/a"', "pytest tests"),
    ("timeout 60 pytest tests/a", "pytest"),
    ("xvfb-run npm test", "npm test"),
    ("CI=1 npx jest a", "CI=1 npx jest"),
)  # fmt: skip
# What passes later has only a part of it, or something else.
NOT_COVERED = (
    ("pytest", "pytest tests/test_a.py"),
    ("pytest tests/test_a.py", "pytest tests/test_b.py"),
    ("pytest tests/test_a.py", "python -m unittest tests.test_b"),
    ("pytest", "python -m unittest tests.test_a"),
    ("python -m unittest tests.a", "python -m unittest tests.a.T"),
    ("python -m unittest tests.ab", "python -m unittest tests.a"),
    ("python -m unittest", "python -m unittest discover -p 'test_a*.py'"),
    ("pytest", "npx jest"),
    ("npx jest", "pytest"),
    ("go test ./...", "go test ./pkg"),
    ("go test ./pkg/foo", "go test ./pkg"),
    ("go test ./...", "go build ./..."),
    ("cargo test", "cargo test tax"),
    ("cargo test", "pytest"),
    ("node --test", "node --test 'test/unit/*.js'"),
    ("npx mocha test/a.js", "npx mocha 'test/b*.js'"),
    ("rspec spec/a_spec.rb", "rspec spec/a_spec.rb:12"),
    ("pytest -k tax", "pytest -k test_tax_free"),
    ("pytest", "pytest -k 'sum or tax'"),
    ("pytest", "pytest -m fast"),
    ("pytest tests/a.py", "pytest tests/a.py -k tax"),
    ("./gradlew test", "./gradlew :core:test"),
    ("mvn test", "mvn test -pl core"),
    ("npm test", "npm test -w web"),
    ("npm test", "cd web && npm test"),
    ("make test", "ctest --test-dir build/part"),
    ("npm test", "npm run test:unit"),
    ("npm test", "npm test -- a.test.js"),
    ("ruff check", "flake8"),
    ("ruff check", "mypy ."),
    ("mypy src", "pytest"),
    ("make lint", "make test"),
    ("npx tsc --noEmit", "npx eslint ."),
    ("ctest", "ctest -R tax"),
)

PAIRS = [
    line.split("\t")
    for line in Path(__file__).with_name("check_pairs.tsv").read_text().splitlines()
]
"""Rows of pairs in many ecosystems: `covered` or `apart`, what failed, what passes later."""


def list_pairs(state: str) -> list[tuple[str, str]]:
    return [(failed, passed) for each, failed, passed in PAIRS if each == state]


@pytest.mark.parametrize(("failed", "passed"), [*COVERED, *list_pairs("covered")])
def test_what_passes_later_settles_what_failed(failed: str, passed: str) -> None:
    runs = list_checks([bash(failed, 1, "it is broken"), bash(passed, 0, "fine")], ROOT)
    assert find_check_problem(runs, ROOT) is None


@pytest.mark.parametrize(("failed", "passed"), [*NOT_COVERED, *list_pairs("apart")])
def test_a_part_or_something_else_does_not_settle_what_failed(failed: str, passed: str) -> None:
    runs = list_checks([bash(failed, 1, "it is broken"), bash(passed, 0, "fine")], ROOT)
    assert find_failure(runs, ROOT) is not None


R_TEST = "Rscript -e 'devtools::test()'"


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        ("[ FAIL 0 | WARN 0 | SKIP 0 | PASS 3 ]", True),
        ("[ FAIL 1 | WARN 0 | SKIP 0 | PASS 2 ]", False),
    ],
)
def test_code_that_ends_with_0_is_judged_by_its_summary(output: str, *, passed: bool) -> None:
    (run,) = list_checks([bash(R_TEST, 0, output)])
    assert (run.passed, run.failed) == (passed, not passed)
