"""Configuration: reads its layers, merges them into one frozen `Config`,
and decides which projects are trusted.
"""
