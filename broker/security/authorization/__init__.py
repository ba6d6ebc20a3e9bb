"""Authorization: operations that a role may perform."""
