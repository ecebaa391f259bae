"""Texts: cut, compared, searched, made safe to print,
and freed from secrets and from what terminals render.
"""
