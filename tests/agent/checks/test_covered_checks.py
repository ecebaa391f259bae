"""A check that failed and passes under another name, with other targets or in another folder,
needs no reminder.
"""

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


@pytest.mark.parametrize(("failed", "passed"), COVERED)
def test_what_passes_later_settles_what_failed(failed: str, passed: str) -> None:
    runs = list_checks([bash(failed, 1, "it is broken"), bash(passed, 0, "fine")], ROOT)
    assert find_check_problem(runs, ROOT) is None


@pytest.mark.parametrize(("failed", "passed"), NOT_COVERED)
def test_a_part_or_something_else_does_not_settle_what_failed(failed: str, passed: str) -> None:
    runs = list_checks([bash(failed, 1, "it is broken"), bash(passed, 0, "fine")], ROOT)
    assert find_failure(runs, ROOT) is not None
