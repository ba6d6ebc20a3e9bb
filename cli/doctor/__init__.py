"""`interpulse doctor`: what is wrong with a machine, a configuration, data, a cluster; with evidence and remedy.

Pure checks (`..._checks`) judge facts that `..._facts` find; `examination` puts them together. A check whose facts are not
there is skipped, with the reason. Changes nothing anywhere.
"""
