"""`interpulse zookeeper`: Apache ZooKeeper as a child process."""
