"""Commands that run codeloop without a user at it."""
