"""Commands that are not kubepy's own: ``kubepy foo bar`` runs ``kubepy-foo-bar`` or ``kubepy-foo`` of the PATH.

:mod:`lookup` finds and runs them, :mod:`command` is ``kubepy plugin list``. Upstream: ``kubectl/pkg/cmd/plugin.go``.
"""
