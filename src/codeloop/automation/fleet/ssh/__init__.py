"""The driver that does the jobs of a fleet on other machines by `ssh`, and its worker there."""
