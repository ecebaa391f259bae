"""The checks of `codeloop doctor`: of this machine, of the setup,
and on request of the services.
"""
