"""The project's files: opened safely, read (texts, pictures, notebooks), replaced atomically;
tools' saved outputs.
"""
