"""The users as whom components of a cluster make their requests, as admission sees them.

Bundles exempt them from their webhooks and policies by name. A controller is its service account,
as in a cluster that kubeadm has made (``--use-service-account-credentials``), where some have other
names than the controllers. Upstream:
``plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go``,
``cmd/kube-controller-manager``.
"""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.kubelet.users import ALL_USERS

API_SERVER: Object = {"username": "system:apiserver", "groups": ["system:masters", ALL_USERS]}
SCHEDULER: Object = {"username": "system:kube-scheduler", "groups": [ALL_USERS]}
# The service accounts of the controllers whose names differ from theirs.
SERVICE_ACCOUNTS = {
    "daemonset-controller": "daemon-set-controller",
    "endpoint-slice-controller": "endpointslice-controller",
    "endpoint-slice-mirroring-controller": "endpointslicemirroring-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "node-lifecycle-controller": "node-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolume-expander-controller": "expand-controller",
    "persistentvolumeclaim-binder-controller": "persistent-volume-binder",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "serviceaccount-controller": "service-account-controller",
    "taint-eviction-controller": "node-controller",
    # The programs that come with a storage driver have service accounts of their own.
    "kubepy.dev/simulated": "csi-provisioner",
    "external-resizer simulated.kubepy.dev": "csi-resizer",
}


def service_account(name: str, namespace: str = "kube-system") -> Object:
    """Return the user that a service account is (``serviceaccount.UserInfo``)."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", ALL_USERS]
    return {"username": f"system:serviceaccount:{namespace}:{name}", "groups": groups}


def user_of(reconciler: str) -> Object:
    """Return the user as whom a reconciler makes its requests; the kubelet chooses that of each
    node by itself."""
    user = {"default-scheduler": SCHEDULER, "crd-finalizer": API_SERVER}.get(reconciler)
    return user or service_account(SERVICE_ACCOUNTS.get(reconciler, reconciler))
