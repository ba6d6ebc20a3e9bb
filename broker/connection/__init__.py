"""One client connection: frames in, frames out, and whether a command is legal now."""
