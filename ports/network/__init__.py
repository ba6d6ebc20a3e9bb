"""Sockets: ports that listen, TLS, buffers of reads and writes, local sockets, HTTP."""
