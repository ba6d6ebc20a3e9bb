"""Commands of the shell, by subject; `cli.bookkeeper_shell.table` names them."""
