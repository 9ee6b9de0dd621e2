"""Validation of objects: functions from an object to a list of field errors, in upstream's order
and words.

``metadata`` is for every kind and called by the request pipeline; ``fields``, ``formats`` and
``resources`` are the checks that many kinds share. The other modules are the rules of kinds, by API
group or subject (upstream: ``pkg/apis/*/validation``), called by their strategies; ``pods`` are
those of pods and of pod templates. A validator of an update takes the old object too, and tolerates
faults that it had already. All functions are pure.
"""
