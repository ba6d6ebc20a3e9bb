"""Command lines: parsers, options, help texts and suggestions. Imports nothing that takes time."""
