"""`pulsar-admin`: Pulsar's administration commands over HTTP, with Apache's names, flags, output and exit codes.

It starts quickly: the standard library alone, a group's table imported when one of its commands is called, and no module of
a server (import-linter holds that). `table` says what a command is, `tables` has them all.
"""
