"""Every command there is, and where it lives: a name is looked up here, and only its module is imported.

The order is kubectl's: suggestions for a mistyped command come out in it.
"""

from __future__ import annotations

from kubepy.cli.runtime.command import Entry

NO_CONTAINERS = "no containers run here: pods are simulated"
NO_METRICS = "nothing uses cpu or memory here, since pods are simulated"
NO_SERVER = "there is no API server, only a folder"
NO_PREFERENCES = "there is no file of preferences: aliases and functions of the shell do the same"


def _unsupported(name: str, why: str) -> Entry:
    return Entry(f"kubepy.cli.unsupported:{name}", f"Not supported: {why}")


_CREATE = "kubepy.cli.create.generators"
_CONFIGMAP = "kubepy.cli.create.configmap"
_SERVICE = "kubepy.cli.create.service"
_RBAC = "kubepy.cli.create.rbac"
_LAST = "kubepy.cli.apply.last_applied"

_SECRET_EXAMPLES = """
# Of literals
kubepy create secret generic login --from-literal=user=admin --from-literal=password=secret

# Of a certificate and its key
kubepy create secret tls web --cert=tls.crt --key=tls.key
"""
_SERVICES_EXAMPLES = """
# A service in front of the pods labelled app=web
kubepy create service clusterip web --tcp=80:8080

# A service on a port of every node
kubepy create service nodeport web --tcp=80 --node-port=30080
"""
_SET_EXAMPLES = """
# Give the container agent of a DaemonSet a new image
kubepy set image ds/log-agent agent=fluent-bit:3.1

# Set a variable in every container of a Deployment
kubepy set env deploy/web LEVEL=debug
"""
_ROLLOUT_EXAMPLES = """
# Wait until a DaemonSet is rolled out
kubepy rollout status ds/log-agent

# Its revisions, and what caused each
kubepy rollout history ds/log-agent

# Back to what was before
kubepy rollout undo ds/log-agent
"""
_AUTH_EXAMPLES = """
# Whether deployments may be made
kubepy auth can-i create deployments

# The user that requests are made by
kubepy auth whoami
"""
_CONFIG_EXAMPLES = """
# Commands without -n use this namespace from now on
kubepy config set-context --current --namespace=web

# All contexts, with their clusters and namespaces
kubepy config get-contexts

# Commands work on the folder and in the namespace of this context
kubepy config use-context staging
"""
_GIT_EXAMPLES = """
# Let git merge and compare the objects in ./state
kubepy git setup

# After a merge that stopped: settle what needs nobody's decision
kubepy git resolve
"""
_PLUGIN_EXAMPLES = """
# Every program on the PATH whose name begins with kubepy-
kubepy plugin list

# Their names only
kubepy plugin list --name-only
"""

CREATE: dict[str, Entry] = {
    "namespace": Entry(f"{_CREATE}:namespace", "Create a namespace with the specified name", ("ns",)),
    "quota": Entry(f"{_CREATE}:quota", "Create a quota with the specified name", ("resourcequota",)),
    "secret": Entry("", "Create a secret", (), {
        "generic": Entry(f"{_CONFIGMAP}:generic_secret", "Create a secret from files or literal values"),
        "tls": Entry(f"{_CONFIGMAP}:tls_secret", "Create a TLS secret"),
        "docker-registry": Entry(f"{_CONFIGMAP}:docker_registry_secret", "Create a secret for a registry"),
    }, examples=_SECRET_EXAMPLES),
    "configmap": Entry(f"{_CONFIGMAP}:configmap", "Create a config map from files or literal values", ("cm",)),
    "serviceaccount": Entry(f"{_CREATE}:serviceaccount", "Create a service account with the specified name", ("sa",)),
    "service": Entry("", "Create a service", ("svc",), {
        "clusterip": Entry(f"{_SERVICE}:clusterip", "Create a ClusterIP service"),
        "nodeport": Entry(f"{_SERVICE}:nodeport", "Create a NodePort service"),
        "loadbalancer": Entry(f"{_SERVICE}:loadbalancer", "Create a LoadBalancer service"),
        "externalname": Entry(f"{_SERVICE}:externalname", "Create an ExternalName service"),
    }, examples=_SERVICES_EXAMPLES),
    "deployment": Entry(f"{_CREATE}:deployment", "Create a deployment with the specified name", ("deploy",)),
    "poddisruptionbudget": Entry(f"{_CREATE}:poddisruptionbudget", "Create a pod disruption budget", ("pdb",)),
    "priorityclass": Entry(f"{_CREATE}:priorityclass", "Create a priority class", ("pc",)),
    "job": Entry(f"{_CREATE}:job", "Create a job with the specified name"),
    "role": Entry(f"{_RBAC}:role", "Create a role with a single rule"),
    "clusterrole": Entry(f"{_RBAC}:clusterrole", "Create a cluster role"),
    "rolebinding": Entry(f"{_RBAC}:rolebinding", "Create a role binding for a particular role or cluster role"),
    "clusterrolebinding": Entry(f"{_RBAC}:clusterrolebinding",
                                "Create a cluster role binding for a particular cluster role"),
    "ingress": Entry("kubepy.cli.create.ingress:ingress", "Create an ingress with the specified name", ("ing",)),
    "token": _unsupported("create_token", NO_SERVER),
    "cronjob": Entry(f"{_CREATE}:cronjob", "Create a cron job with the specified name", ("cj",)),
}

ROLLOUT: dict[str, Entry] = {
    "history": Entry("kubepy.cli.rollout.history:history", "View rollout history"),
    "pause": Entry("kubepy.cli.rollout.restart:pause", "Mark the provided resource as paused"),
    "resume": Entry("kubepy.cli.rollout.restart:resume", "Resume a paused resource"),
    "undo": Entry("kubepy.cli.rollout.undo:undo", "Undo a previous rollout"),
    "status": Entry("kubepy.cli.rollout.status:status", "Show the status of the rollout"),
    "restart": Entry("kubepy.cli.rollout.restart:restart", "Restart a resource"),
}

SET: dict[str, Entry] = {
    "image": Entry("kubepy.cli.set.image:image", "Update the image of a pod template"),
    "resources": Entry("kubepy.cli.set.resources:resources", "Update resource requests/limits on pod templates"),
    "selector": Entry("kubepy.cli.set.selector:selector", "Set the selector on a resource"),
    "subject": Entry("kubepy.cli.set.subject:subject", "Update who is bound to a role"),
    "serviceaccount": Entry("kubepy.cli.set.serviceaccount:serviceaccount", "Update the service account of a resource",
                            ("sa",)),
    "env": Entry("kubepy.cli.set.env:env", "Update environment variables on a pod template"),
}

APPLY: dict[str, Entry] = {
    "view-last-applied": Entry(f"{_LAST}:view", "View what was applied last"),
    "set-last-applied": Entry(f"{_LAST}:set_", "Set what counts as applied last to the contents of a file"),
    "edit-last-applied": Entry(f"{_LAST}:edit", "Edit what counts as applied last"),
}

_CONTEXTS = "kubepy.cli.config.contexts"
_ENTRIES = "kubepy.cli.config.entries"
_PROPERTIES = "kubepy.cli.config.properties"
CONFIG: dict[str, Entry] = {
    "current-context": Entry(f"{_CONTEXTS}:current_context", "Display the current-context"),
    "delete-cluster": Entry(f"{_ENTRIES}:delete_cluster", "Delete a cluster, the name of a state folder"),
    "delete-context": Entry(f"{_CONTEXTS}:delete_context", "Delete a context"),
    "delete-user": Entry(f"{_ENTRIES}:delete_user", "Delete a user"),
    "get-clusters": Entry(f"{_ENTRIES}:get_clusters", "Display the clusters that contexts may name"),
    "get-contexts": Entry(f"{_CONTEXTS}:get_contexts", "Describe one or many contexts"),
    "get-users": Entry(f"{_ENTRIES}:get_users", "Display the users that contexts may name"),
    "rename-context": Entry(f"{_CONTEXTS}:rename_context", "Rename a context"),
    "set": Entry(f"{_PROPERTIES}:set_", "Set an individual value"),
    "set-cluster": Entry(f"{_ENTRIES}:set_cluster", "Set a cluster: a name for a state folder"),
    "set-context": Entry(f"{_CONTEXTS}:set_context", "Set the state folder and the namespace of a context"),
    "set-credentials": Entry(f"{_ENTRIES}:set_credentials", "Set a user"),
    "unset": Entry(f"{_PROPERTIES}:unset", "Unset an individual value"),
    "use-context": Entry(f"{_CONTEXTS}:use_context", "Set the current-context", ("use",)),
    "view": Entry("kubepy.cli.config.view:view", "Display contexts, clusters and users in the form of a kubeconfig"),
}


AUTH: dict[str, Entry] = {
    "can-i": Entry("kubepy.cli.auth.access:can_i", "Check whether an action is allowed"),
    "reconcile": Entry("kubepy.cli.auth.reconcile:reconcile", "Give roles and bindings what files describe"),
    "whoami": Entry("kubepy.cli.auth.access:whoami", "Check self subject attributes"),
}
GIT: dict[str, Entry] = {
    "setup": Entry("kubepy.cli.git.setup:setup", "Set up the git repository that the state folder lies in"),
    "resolve": Entry("kubepy.cli.git.resolve:resolve", "Settle conflicts over removed files of objects"),
    "refresh": Entry("kubepy.cli.git.intent:refresh", "Tell git of files that are as committed but for their status"),
    "merge-file": Entry("kubepy.cli.git.merging:merge_file", "Merge two versions of an object's file (git's merge "
                        "driver)"),
    "diff-text": Entry("kubepy.cli.git.text:diff_text", "Print an object with the paths of fields (git's textconv)"),
    "filter": Entry("kubepy.cli.git.intent:filter_", "Leave out what the system writes (git's filter process)"),
}
PLUGIN: dict[str, Entry] = {
    "list": Entry("kubepy.cli.plugins.command:list_", "List the programs on the PATH that are plugins"),
}


COMMANDS: dict[str, Entry] = {
    "create": Entry("kubepy.cli.create.command:create", "Create a resource from a file or from stdin", (), CREATE),
    "expose": Entry("kubepy.cli.expose:expose", "Take a service, deployment or pod and expose it as a new service"),
    "run": Entry("kubepy.cli.run:run", "Run a particular image on the cluster"),
    "set": Entry("", "Set specific features on objects", (), SET, examples=_SET_EXAMPLES),
    "explain": Entry("kubepy.cli.explain:explain", "Get documentation for a resource"),
    "get": Entry("kubepy.cli.get:get", "Display one or many resources"),
    "edit": Entry("kubepy.cli.edit:edit", "Edit a resource with an editor"),
    "delete": Entry("kubepy.cli.delete:delete", "Delete resources by file names, resources and names, or labels"),
    "rollout": Entry("", "Manage the rollout of a resource", (), ROLLOUT, help_on_stdout=True,
                     examples=_ROLLOUT_EXAMPLES),
    "scale": Entry("kubepy.cli.scale:scale", "Set a new size for a deployment, replica set or stateful set"),
    "autoscale": Entry("kubepy.cli.autoscale:autoscale", "Auto-scale a deployment, replica set or stateful set"),
    "certificate": Entry("kubepy.cli.certificate:certificate", "Approve and deny certificate signing requests", (), {
        "approve": Entry("kubepy.cli.certificate:approve", "Approve a certificate signing request"),
        "deny": Entry("kubepy.cli.certificate:deny", "Deny a certificate signing request"),
    }),
    "cluster-info": Entry("kubepy.cli.cluster_info:cluster_info", "Display the folder that is the cluster", (), {
        "dump": Entry("kubepy.cli.cluster_info:dump", "Dump relevant information for debugging and diagnosis"),
    }),
    "top": _unsupported("top", NO_METRICS),
    "events": Entry("kubepy.cli.events:events", "List events"),
    "cordon": Entry("kubepy.cli.nodes.cordon:cordon", "Mark node as unschedulable"),
    "uncordon": Entry("kubepy.cli.nodes.cordon:uncordon", "Mark node as schedulable"),
    "drain": Entry("kubepy.cli.nodes.drain:drain", "Drain node in preparation for maintenance"),
    "taint": Entry("kubepy.cli.nodes.taint:taint", "Update the taints on one or more nodes"),
    "describe": Entry("kubepy.cli.describe:describe", "Show details of a specific resource or group of resources"),
    "logs": _unsupported("logs", NO_CONTAINERS),
    "attach": _unsupported("attach", NO_CONTAINERS),
    "exec": _unsupported("exec_", NO_CONTAINERS),
    "port-forward": _unsupported("port_forward", NO_CONTAINERS),
    "proxy": _unsupported("proxy", NO_SERVER),
    "cp": _unsupported("cp", NO_CONTAINERS),
    "auth": Entry("", "Inspect authorization", (), AUTH, examples=_AUTH_EXAMPLES),
    "debug": _unsupported("debug", NO_CONTAINERS),
    "diff": Entry("kubepy.cli.diff:diff", "Diff the live version against a would-be applied version"),
    "apply": Entry("kubepy.cli.apply.command:apply", "Apply a configuration to a resource by file name or stdin", (),
                   APPLY),
    "patch": Entry("kubepy.cli.patch:patch", "Update fields of a resource"),
    "replace": Entry("kubepy.cli.replace:replace", "Replace a resource by file name or stdin"),
    "wait": Entry("kubepy.cli.wait:wait", "Wait for a specific condition on one or many resources"),
    "kustomize": Entry("kubepy.cli.kustomize:kustomize", "Build a kustomization target from a directory"),
    "label": Entry("kubepy.cli.label:label", "Update the labels on a resource"),
    "annotate": Entry("kubepy.cli.annotate:annotate", "Update the annotations on a resource"),
    "completion": Entry("kubepy.cli.completion.scripts:completion", "Output shell completion code (bash, zsh, fish)"),
    "config": Entry("", "Choose the state folder and the namespace that commands use", (), CONFIG,
                    examples=_CONFIG_EXAMPLES),
    "version": Entry("kubepy.cli.version:version", "Print the client and server version information"),
    "api-versions": Entry("kubepy.cli.api_resources:api_versions", 'Print the supported API versions'),
    "api-resources": Entry("kubepy.cli.api_resources:api_resources", "Print the supported API resources"),
    "options": Entry("kubepy.cli.version:options", "Print the list of flags inherited by all commands"),
    "plugin": Entry("", "Commands that are not kubepy's own", (), PLUGIN, examples=_PLUGIN_EXAMPLES),
    "kuberc": _unsupported("kuberc", NO_PREFERENCES),
    "alpha": Entry("kubepy.cli.help:alpha", "Commands that could still change: there are none"),
    "help": Entry("kubepy.cli.help:help_", "Show the help of a command"),
    "init": Entry("kubepy.cli.init:init", "Make a cluster: a new state folder"),
    "controller": Entry("kubepy.cli.controller:controller", "Run controllers, scheduler and simulated kubelets"),
    "fsck": Entry("kubepy.cli.fsck:fsck", "Check the state folder"),
    "git": Entry("", "Keep the state folder in a git repository", (), GIT, help_on_stdout=True, examples=_GIT_EXAMPLES),
    "__complete": Entry("kubepy.cli.completion.candidates:complete", ""),
}

GROUPS: dict[str, tuple[str, ...]] = {
    "State Folder Commands": ("init", "controller", "fsck", "git"),
    "Basic Commands (Beginner)": ("create", "expose", "run", "set"),
    "Basic Commands (Intermediate)": ("explain", "get", "edit", "delete"),
    "Deploy Commands": ("rollout", "scale", "autoscale"),
    "Cluster Management Commands": ("certificate", "cluster-info", "cordon", "uncordon", "drain", "taint"),
    "Troubleshooting and Debugging Commands": ("describe", "events", "auth"),
    "Advanced Commands": ("diff", "apply", "patch", "replace", "wait", "kustomize"),
    "Settings Commands": ("label", "annotate", "completion"),
    "Other Commands": ("api-resources", "api-versions", "config", "help", "plugin", "version"),
}
