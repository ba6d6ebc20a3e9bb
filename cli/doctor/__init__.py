"""`bin/pulsar doctor`: what is wrong with a machine, a configuration, data, a cluster; with evidence and remedy.

Pure checks (`machine_checks`, `settings_checks`, `data_checks`, `cluster_checks`) judge facts that `local_facts` and
`cluster_facts` find. A check whose facts are not there is skipped, with the reason. Changes nothing anywhere.
"""
