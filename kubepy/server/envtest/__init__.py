"""The programs that controller-runtime's envtest starts: ``kube-apiserver``, ``etcd``, ``kubectl``.

:mod:`assets` makes a folder with them, :mod:`apiserver` and :mod:`etcd` are what they run,
:mod:`flags` reads the command line of the first. Upstream: ``controller-runtime/pkg/envtest``,
``cmd/kube-apiserver/app``.
"""
