"""The figures of README and site: measured in one run, kept as JSON, put into tables by a command."""
