"""The dialogs of the terminal UI, most of them lists to choose from,
which are built on `picker.py`.
"""
