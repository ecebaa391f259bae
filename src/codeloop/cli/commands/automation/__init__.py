"""Commands that run codeloop without a person at it."""
