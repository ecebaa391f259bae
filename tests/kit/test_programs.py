from pathlib import Path

from codeloop.kit.programs import find_program


def test_programs_are_found_in_absolute_folders_only(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    assert find_program("tool", str(tmp_path)) is None
    program.chmod(0o755)
    assert find_program("tool", f"relative:{tmp_path}") == str(program)
    assert find_program("tool", "") is None
    (tmp_path / "dir").mkdir()
    assert find_program("dir", str(tmp_path)) is None
