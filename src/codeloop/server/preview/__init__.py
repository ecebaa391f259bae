"""`/api/*`, the preview of the contract's version 2, as a translation of version 1;
loaded by a server alone.
"""
