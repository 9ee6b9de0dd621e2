"""The API of a cluster over HTTP: ``kubepy serve``, for kubectl, client-go, helm and every other
Kubernetes client.

A request takes this way:

* ``chain`` is the one ASGI callable: it reads the request within the limits and sends the answer;
  ``listener`` runs it;
* ``application`` is what all requests share;
* ``requestinfo`` parses method, path and query: verb, group, version, resource, namespace, name,
  subresource;
* ``authentication`` finds out who asks, ``kubepy.apiserver.authorization`` whether they may;
* ``routes`` chooses the handler: ``handlers`` for objects, ``subresources``, ``discovery``,
  ``openapi``, ``health``;
* ``backend`` runs handlers in its threads: storage is synchronous, with one writer and a few
  readers;
* ``negotiation`` encodes the answer as the client accepts it: JSON, YAML, protobuf, Table,
  PartialObjectMetadata.

A watch is answered in the event loop, from the ``watchcache`` that one task feeds from the change
log. Upstream: ``k8s.io/apiserver/pkg/server`` (the chain of handlers), ``pkg/endpoints``,
``pkg/storage/cacher``.
"""
