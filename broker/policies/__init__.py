"""Policies of topics at three levels: values, defaults, Apache's JSON, and those in force for one topic. Pure."""
