"""The library behind `import codeloop`: opens projects, and runs sessions in them, from Python."""
