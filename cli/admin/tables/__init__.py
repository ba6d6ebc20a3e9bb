"""The commands of each group, one module a group, in Apache's words; `cli.admin.groups` names them."""
