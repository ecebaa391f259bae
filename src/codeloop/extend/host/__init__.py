"""Extension hosts: processes, one for each language, that run extensions and speak a small protocol."""
