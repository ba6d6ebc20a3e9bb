"""Connections to bookies across sockets."""
