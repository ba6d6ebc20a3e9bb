"""The journal: what makes an add durable. Group commit, checksummed frames, recycled files, replay."""
