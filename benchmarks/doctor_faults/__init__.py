"""Faults that are injected into real servers, directories, files and clients, and what `bin/pulsar doctor` says of them.

`python -m benchmarks.doctor_faults` prints a table: was each named, was the remedy the right one, and was the doctor silent
about what is sound. Every fault goes through the real command with its exit code.
"""
