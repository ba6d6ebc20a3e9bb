"""Lives of a whole cluster: brokers, bookies, ZooKeeper and clients."""
