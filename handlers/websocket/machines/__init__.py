"""Sessions without their sockets: JSON and frames in, effects out."""
