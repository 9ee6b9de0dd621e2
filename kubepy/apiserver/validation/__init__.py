"""What an API server refuses, and why: functions from an object to a list of field errors, in upstream's order.

``names`` and ``metadata`` hold for every kind and are called by the request pipeline; the other modules are the rules
of single kinds (upstream: ``pkg/apis/*/validation``), called by their strategies. All are pure.
"""
