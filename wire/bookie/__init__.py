"""The bookie protocol: versions 2 (binary) and 3 (protobuf). Pure; the loops are in `wire.kernels`."""
