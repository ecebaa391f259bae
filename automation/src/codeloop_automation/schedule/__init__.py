"""`codeloop schedule`: prompts that timers of the operating system (systemd or cron) run."""
