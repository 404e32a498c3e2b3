"""The command line: one file a group of commands; `main` has the table of commands and turns errors into exit codes."""
