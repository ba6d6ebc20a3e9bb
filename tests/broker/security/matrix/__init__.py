"""Permissions by route and command: Apache's decisions, recorded, and the roles that they are about."""
