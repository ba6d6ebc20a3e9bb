"""Bytes <-> values, pure: frames, commands, entries, digests, kernels, generated protobuf code. No I/O, clock or chance."""
