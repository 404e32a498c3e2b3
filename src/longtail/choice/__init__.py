"""Which methods suit some data, a machine and a time: what the method `auto` decides by.

facts       what is in the data, and what the machine has
candidates  methods that come into question, and why others do not
costs       how long each takes, from training it on samples
schedule    the most of them that fits into the time
"""
