"""Protocols beside Pulsar's own, above the broker. Each is a folder, is given the parts that it uses, and loads when used."""
