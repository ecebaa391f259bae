"""Which paths sandboxed commands see, may not read or may not write: tables,
and what is found by them on the disk.
"""
