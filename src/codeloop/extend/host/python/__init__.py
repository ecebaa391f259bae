"""The program that extensions in Python run in. It loads nothing of codeloop but what it needs."""
