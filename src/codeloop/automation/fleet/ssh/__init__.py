"""Does the jobs of a fleet on other machines, which the system's `ssh` reaches."""
