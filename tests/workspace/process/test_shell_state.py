from codeloop.workspace.process.shell_state import parse_exports


def test_the_exports_that_sh_prints_are_its_variables_alone() -> None:
    printed = "export A='x y'\nexport DECLARED\nexport EMPTY=''\nexport PWD='/work'\n"
    assert parse_exports(printed) == {"A": "x y", "EMPTY": ""}
