"""Rows of programs, by family: `program.py` explains them."""
