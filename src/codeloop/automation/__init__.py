"""What runs codeloop without a person at it, by starting `codeloop` as a program."""
