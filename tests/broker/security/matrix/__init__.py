"""Who may use which route and which command: Apache's decisions, recorded, and the roles that they are about."""
