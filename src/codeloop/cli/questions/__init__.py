"""Permission requests, questions of the model and trust: asked at the terminal,
or answered without a user.
"""
