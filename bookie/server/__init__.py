"""A bookie's port: Apache's bookie protocol, versions 2 and 3, in front of `bookie.bookie`."""
