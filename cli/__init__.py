"""Composition roots (standalone, broker, bookie) and tools. The only place where real ports meet the layers."""
