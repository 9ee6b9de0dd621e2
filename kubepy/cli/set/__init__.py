"""``set``: change particular fields of objects.

Each command says how it changes an object; :mod:`change` finds, patches and prints the objects for
all of them. :mod:`pod_template` has the commands for images, resources and service
accounts, :mod:`env` that for environment variables; :mod:`selector` changes
Services, :mod:`subject` role bindings. Upstream: ``k8s.io/kubectl/pkg/cmd/set``.
"""
