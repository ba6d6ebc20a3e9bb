"""Configurations of servers: Apache's keys, read, checked, explained. Owns no setting of a layer."""
