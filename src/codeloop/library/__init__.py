"""codeloop as a library: open a project, hold sessions in it, from Python."""
