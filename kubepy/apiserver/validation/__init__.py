"""Validation that many kinds share: functions from a value to field errors, in upstream's order and
words.

``metadata`` is for every kind and called by the request pipeline; ``fields``, ``formats`` and
``resources`` are the checks of single fields. The rules of each kind are in
``kubepy.apiserver.kinds``, in the ``validation`` module of its group (upstream:
``pkg/apis/*/validation``), called by its strategy. A validator of an update takes the old object
too, and tolerates faults that it had already. All functions are pure.
"""
