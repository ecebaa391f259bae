"""Amazon's credentials: files, variables, roles, sign-in, containers and instances;
signatures of requests.
"""
