"""The metadata store on Apache ZooKeeper: one session after another, through kazoo.

Pure: `session` (what a connection's events mean), `plan` (a commit as ZooKeeper's steps), `outcome` (what became of a write
whose answer was lost), `order` (which writes may run beside each other), `mirror` (what watchers know). Doing: `store`, and
behind the port in `requests` the threads of kazoo in `kazoo_session`.
"""
