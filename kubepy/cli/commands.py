"""The catalogue of all commands. A module is imported when a command of it is first named.

The order is kubectl's: suggestions for a mistyped command come out in it.
"""

from __future__ import annotations

from kubepy.cli.names import OWN_COMMANDS
from kubepy.cli.runtime.command import Entry
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.cli import (
        annotate,
        api_resources,
        apply,
        auth,
        autoscale,
        certificate,
        clock,
        cluster_info,
        completion,
        config,
        controller,
        delete,
        describe,
        diff,
        drain,
        edit,
        envtest_assets,
        events,
        explain,
        expose,
        get,
        importing,
        kuberc,
        kustomize,
        label,
        last_applied,
        logs,
        patch,
        plan,
        plugins,
        proxy,
        replace,
        run,
        scale,
        serve,
        state_folder,
        taint,
        timeline,
        top,
        trust,
        version,
        wait,
        why,
    )
    from kubepy.cli import help as help_commands
    from kubepy.cli.create import command as create_command
    from kubepy.cli.create import configmap as create_configmap
    from kubepy.cli.create import generators as create_generators
    from kubepy.cli.create import ingress as create_ingress
    from kubepy.cli.create import rbac as create_rbac
    from kubepy.cli.create import service as create_service
    from kubepy.cli.create import token as create_token
    from kubepy.cli.git import intent as git_intent
    from kubepy.cli.git import merging as git_merging
    from kubepy.cli.git import resolve as git_resolve
    from kubepy.cli.git import setup as git_setup
    from kubepy.cli.git import text as git_text
    from kubepy.cli.inside import attach as inside_attach
    from kubepy.cli.inside import copy as inside_copy
    from kubepy.cli.inside import debug as inside_debug
    from kubepy.cli.inside import execute as inside_exec
    from kubepy.cli.inside import forward as inside_forward
    from kubepy.cli.mcp import command as mcp_command
    from kubepy.cli.mcp import worker as mcp_worker
    from kubepy.cli.rollout import diff as rollout_diff
    from kubepy.cli.rollout import history as rollout_history
    from kubepy.cli.rollout import restart as rollout_restart
    from kubepy.cli.rollout import status as rollout_status
    from kubepy.cli.rollout import undo as rollout_undo
    from kubepy.cli.set import env as set_env
    from kubepy.cli.set import pod_template as set_pod_template
    from kubepy.cli.set import selector as set_selector
    from kubepy.cli.set import subject as set_subject
    from kubepy.demo import command as demo_command
    from kubepy.fuzz import command as fuzz_command

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

# View its revisions, with the cause of each
kubepy rollout history ds/log-agent

# Roll back to the previous revision
kubepy rollout undo ds/log-agent

# Replace the pods of all Deployments with a label
kubepy rollout restart deploy -l app=web
"""
_TOP_EXAMPLES = """
# What the nodes use, those with the most memory first
kubepy top node --sort-by=memory

# What the pods of an application use, and all of them together
kubepy top pod -l app=web --sum
"""
_AUTH_EXAMPLES = """
# Check whether deployments may be created
kubepy auth can-i create deployments

# Print the user that requests are made as
kubepy auth whoami
"""
_KUBERC_EXAMPLES = """
# View the preferences
kubepy kuberc view

# Ask before anything is deleted
kubepy kuberc set --section=defaults --command=delete --option=interactive=true
"""
_CONFIG_EXAMPLES = """
# Set the namespace that commands without -n use
kubepy config set-context --current --namespace=web

# List all contexts, with their clusters and namespaces
kubepy config get-contexts

# Use the folder and the namespace of this context
kubepy config use-context staging
"""
_GIT_EXAMPLES = """
# Let git merge and compare the objects in ./state
kubepy git setup

# After a merge that stopped: settle the conflicts that need no decision
kubepy git resolve
"""
_PLUGIN_EXAMPLES = """
# Every program on the PATH whose name begins with kubepy-
kubepy plugin list

# Their names only
kubepy plugin list --name-only
"""

CREATE: dict[str, Entry] = {
    "namespace": Entry(
        lambda: create_generators.namespace, "Create a namespace with the specified name", ("ns",)
    ),
    "quota": Entry(
        lambda: create_generators.quota,
        "Create a quota with the specified name",
        ("resourcequota",),
    ),
    "secret": Entry(
        None,
        "Create a secret",
        (),
        {
            "generic": Entry(
                lambda: create_configmap.generic_secret,
                "Create a secret from files or literal values",
            ),
            "tls": Entry(lambda: create_configmap.tls_secret, "Create a TLS secret"),
            "docker-registry": Entry(
                lambda: create_configmap.docker_registry_secret, "Create a secret for a registry"
            ),
        },
        examples=_SECRET_EXAMPLES,
    ),
    "configmap": Entry(
        lambda: create_configmap.configmap,
        "Create a config map from files or literal values",
        ("cm",),
    ),
    "serviceaccount": Entry(
        lambda: create_generators.serviceaccount,
        "Create a service account with the specified name",
        ("sa",),
    ),
    "service": Entry(
        None,
        "Create a service",
        ("svc",),
        {
            "clusterip": Entry(lambda: create_service.clusterip, "Create a ClusterIP service"),
            "nodeport": Entry(lambda: create_service.nodeport, "Create a NodePort service"),
            "loadbalancer": Entry(
                lambda: create_service.loadbalancer, "Create a LoadBalancer service"
            ),
            "externalname": Entry(
                lambda: create_service.externalname, "Create an ExternalName service"
            ),
        },
        examples=_SERVICES_EXAMPLES,
    ),
    "deployment": Entry(
        lambda: create_generators.deployment,
        "Create a deployment with the specified name",
        ("deploy",),
    ),
    "poddisruptionbudget": Entry(
        lambda: create_generators.poddisruptionbudget, "Create a pod disruption budget", ("pdb",)
    ),
    "priorityclass": Entry(
        lambda: create_generators.priorityclass, "Create a priority class", ("pc",)
    ),
    "job": Entry(lambda: create_generators.job, "Create a job with the specified name"),
    "role": Entry(lambda: create_rbac.role, "Create a role with a single rule"),
    "clusterrole": Entry(lambda: create_rbac.clusterrole, "Create a cluster role"),
    "rolebinding": Entry(
        lambda: create_rbac.rolebinding,
        "Create a role binding for a particular role or cluster role",
    ),
    "clusterrolebinding": Entry(
        lambda: create_rbac.clusterrolebinding,
        "Create a cluster role binding for a particular cluster role",
    ),
    "ingress": Entry(
        lambda: create_ingress.ingress, "Create an ingress with the specified name", ("ing",)
    ),
    "token": Entry(lambda: create_token.token, "Request a service account token"),
    "cronjob": Entry(
        lambda: create_generators.cronjob, "Create a cron job with the specified name", ("cj",)
    ),
}

ROLLOUT: dict[str, Entry] = {
    "history": Entry(lambda: rollout_history.history, "View rollout history"),
    "diff": Entry(lambda: rollout_diff.diff, "Show what changed between two revisions"),
    "pause": Entry(lambda: rollout_restart.pause, "Mark the provided resource as paused"),
    "resume": Entry(lambda: rollout_restart.resume, "Resume a paused resource"),
    "undo": Entry(lambda: rollout_undo.undo, "Undo a previous rollout"),
    "status": Entry(lambda: rollout_status.status, "Show the status of the rollout"),
    "restart": Entry(lambda: rollout_restart.restart, "Restart a resource"),
}

SET: dict[str, Entry] = {
    "image": Entry(lambda: set_pod_template.image, "Update the image of a pod template"),
    "resources": Entry(
        lambda: set_pod_template.resources, "Update resource requests/limits on pod templates"
    ),
    "selector": Entry(lambda: set_selector.selector, "Set the selector on a resource"),
    "subject": Entry(lambda: set_subject.subject, "Update who is bound to a role"),
    "serviceaccount": Entry(
        lambda: set_pod_template.serviceaccount, "Update the service account of a resource", ("sa",)
    ),
    "env": Entry(lambda: set_env.env, "Update environment variables on a pod template"),
}

APPLY: dict[str, Entry] = {
    "view-last-applied": Entry(
        lambda: last_applied.view, "View the latest last-applied-configuration annotations"
    ),
    "set-last-applied": Entry(
        lambda: last_applied.set_,
        "Set the last-applied-configuration annotation to the contents of a file",
    ),
    "edit-last-applied": Entry(
        lambda: last_applied.edit, "Edit the latest last-applied-configuration annotations"
    ),
}

CONFIG: dict[str, Entry] = {
    "current-context": Entry(lambda: config.current_context, "Display the current-context"),
    "delete-cluster": Entry(
        lambda: config.delete_cluster, "Delete a cluster, the name of a state folder"
    ),
    "delete-context": Entry(lambda: config.delete_context, "Delete a context"),
    "delete-user": Entry(lambda: config.delete_user, "Delete a user"),
    "get-clusters": Entry(
        lambda: config.get_clusters, "Display the clusters that contexts may name"
    ),
    "get-contexts": Entry(lambda: config.get_contexts, "Describe one or many contexts"),
    "get-users": Entry(lambda: config.get_users, "Display the users that contexts may name"),
    "rename-context": Entry(lambda: config.rename_context, "Rename a context"),
    "set": Entry(lambda: config.set_, "Set an individual value"),
    "set-cluster": Entry(lambda: config.set_cluster, "Set a cluster: a name for a state folder"),
    "set-context": Entry(
        lambda: config.set_context, "Set the state folder and the namespace of a context"
    ),
    "set-credentials": Entry(lambda: config.set_credentials, "Set a user"),
    "unset": Entry(lambda: config.unset, "Unset an individual value"),
    "use-context": Entry(lambda: config.use_context, "Set the current-context", ("use",)),
    "view": Entry(
        lambda: config.view, "Display contexts, clusters and users in the form of a kubeconfig"
    ),
}


AUTH: dict[str, Entry] = {
    "can-i": Entry(lambda: auth.can_i, "Check whether an action is allowed"),
    "reconcile": Entry(
        lambda: auth.reconcile, "Reconcile RBAC roles and bindings with those of files"
    ),
    "whoami": Entry(lambda: auth.whoami, "Check self subject attributes"),
}
GIT: dict[str, Entry] = {
    "setup": Entry(
        lambda: git_setup.setup, "Set up the git repository that the state folder lies in"
    ),
    "resolve": Entry(lambda: git_resolve.resolve, "Settle conflicts over removed files of objects"),
    "refresh": Entry(
        lambda: git_intent.refresh, "Update git's index for files that differ only in status"
    ),
    "merge-file": Entry(
        lambda: git_merging.merge_file,
        "Merge two versions of an object's file (git's merge driver)",
    ),
    "diff-text": Entry(
        lambda: git_text.diff_text, "Print an object with the paths of fields (git's textconv)"
    ),
    "filter": Entry(
        lambda: git_intent.filter_,
        "Remove the fields that the system writes (git's filter process)",
    ),
}
DEMO: dict[str, Entry] = {
    "challenge": Entry(lambda: demo_command.challenge, "Make a broken cluster to repair"),
    "grade": Entry(lambda: demo_command.grade_, "Say whether the cluster is repaired"),
    "hint": Entry(lambda: demo_command.hint, "Print a hint for the challenge in use"),
    "verify": Entry(lambda: demo_command.verify_, "Check the file of a challenge"),
}
KUBERC: dict[str, Entry] = {
    "set": Entry(lambda: kuberc.set_, "Set values in the preferences"),
    "view": Entry(lambda: kuberc.view, "Display the preferences"),
}
PLUGIN: dict[str, Entry] = {
    "list": Entry(lambda: plugins.list_, "List the programs on the PATH that are plugins"),
}


COMMANDS: dict[str, Entry] = {
    "create": Entry(
        lambda: create_command.create, "Create a resource from a file or from stdin", (), CREATE
    ),
    "expose": Entry(
        lambda: expose.expose, "Take a service, deployment or pod and expose it as a new service"
    ),
    "run": Entry(lambda: run.run, "Run a particular image on the cluster"),
    "set": Entry(None, "Set specific features on objects", (), SET, examples=_SET_EXAMPLES),
    "explain": Entry(lambda: explain.explain, "Get documentation for a resource"),
    "get": Entry(lambda: get.get, "Display one or many resources"),
    "edit": Entry(lambda: edit.edit, "Edit a resource with an editor"),
    "delete": Entry(
        lambda: delete.delete, "Delete resources by file names, resources and names, or labels"
    ),
    "rollout": Entry(
        None,
        "Manage the rollout of a resource",
        (),
        ROLLOUT,
        help_on_stdout=True,
        examples=_ROLLOUT_EXAMPLES,
    ),
    "scale": Entry(
        lambda: scale.scale, "Set a new size for a deployment, replica set or stateful set"
    ),
    "autoscale": Entry(
        lambda: autoscale.autoscale, "Auto-scale a deployment, replica set or stateful set"
    ),
    "certificate": Entry(
        lambda: certificate.certificate,
        "Approve and deny certificate signing requests",
        (),
        {
            "approve": Entry(lambda: certificate.approve, "Approve a certificate signing request"),
            "deny": Entry(lambda: certificate.deny, "Deny a certificate signing request"),
        },
    ),
    "cluster-info": Entry(
        lambda: cluster_info.cluster_info,
        "Display where the cluster is kept",
        (),
        {
            "dump": Entry(
                lambda: cluster_info.dump, "Dump relevant information for debugging and diagnosis"
            ),
        },
    ),
    "top": Entry(
        None,
        "Display resource (CPU/memory) usage",
        (),
        {
            "node": Entry(
                lambda: top.top_node,
                "Display resource (CPU/memory) usage of nodes",
                ("nodes", "no"),
            ),
            "pod": Entry(
                lambda: top.top_pod, "Display resource (CPU/memory) usage of pods", ("pods", "po")
            ),
        },
        examples=_TOP_EXAMPLES,
    ),
    "events": Entry(lambda: events.events, "List events"),
    "cordon": Entry(lambda: drain.cordon, "Mark node as unschedulable"),
    "uncordon": Entry(lambda: drain.uncordon, "Mark node as schedulable"),
    "drain": Entry(lambda: drain.drain, "Drain node in preparation for maintenance"),
    "taint": Entry(lambda: taint.taint, "Update the taints on one or more nodes"),
    "describe": Entry(
        lambda: describe.describe, "Show details of a specific resource or group of resources"
    ),
    "logs": Entry(lambda: logs.logs, "Print the logs for a container in a pod"),
    "attach": Entry(lambda: inside_attach.attach, "Attach to a running container"),
    "exec": Entry(lambda: inside_exec.exec_, "Execute a command in a container"),
    "port-forward": Entry(
        lambda: inside_forward.port_forward, "Forward one or more local ports to a pod"
    ),
    "proxy": Entry(lambda: proxy.proxy, "Run a proxy to the Kubernetes API server"),
    "cp": Entry(lambda: inside_copy.cp, "Copy files and directories to and from containers"),
    "auth": Entry(None, "Inspect authorization", (), AUTH, examples=_AUTH_EXAMPLES),
    "debug": Entry(
        lambda: inside_debug.debug,
        "Create debugging sessions for troubleshooting workloads and nodes",
    ),
    "diff": Entry(lambda: diff.diff, "Diff the live version against a would-be applied version"),
    "apply": Entry(
        lambda: apply.apply, "Apply a configuration to a resource by file name or stdin", (), APPLY
    ),
    "patch": Entry(lambda: patch.patch, "Update fields of a resource"),
    "replace": Entry(lambda: replace.replace, "Replace a resource by file name or stdin"),
    "wait": Entry(lambda: wait.wait, "Wait for a specific condition on one or many resources"),
    "kustomize": Entry(
        lambda: kustomize.kustomize, "Build a kustomization target from a directory"
    ),
    "label": Entry(lambda: label.label, "Update the labels on a resource"),
    "annotate": Entry(lambda: annotate.annotate, "Update the annotations on a resource"),
    "completion": Entry(
        lambda: completion.completion, "Output shell completion code (bash, zsh, fish)"
    ),
    "config": Entry(None, "Modify kubeconfig files", (), CONFIG, examples=_CONFIG_EXAMPLES),
    "version": Entry(lambda: version.version, "Print the client and server version information"),
    "api-versions": Entry(lambda: api_resources.api_versions, "Print the supported API versions"),
    "api-resources": Entry(
        lambda: api_resources.api_resources, "Print the supported API resources"
    ),
    "options": Entry(lambda: version.options, "Print the list of flags inherited by all commands"),
    "plugin": Entry(
        None, "Commands that are not kubepy's own", (), PLUGIN, examples=_PLUGIN_EXAMPLES
    ),
    "kuberc": Entry(
        None,
        "Manage preferences: aliases of commands, defaults of flags",
        (),
        KUBERC,
        examples=_KUBERC_EXAMPLES,
    ),
    "alpha": Entry(lambda: help_commands.alpha, "Commands that could still change: there are none"),
    "help": Entry(lambda: help_commands.help_, "Show the help of a command"),
    "init": Entry(lambda: state_folder.init, "Make a cluster: a new state folder, or one in etcd"),
    "import": Entry(
        lambda: importing.import_, "Make a cluster of somebody else's: dumps, files, an etcd"
    ),
    "controller": Entry(
        lambda: controller.controller, "Run controllers, scheduler and simulated kubelets"
    ),
    "clock": Entry(
        lambda: clock.clock,
        "Show the time of the cluster and what is due next; move it",
        (),
        {
            "advance": Entry(lambda: clock.advance, "Move the cluster's own time by a duration"),
            "set": Entry(lambda: clock.set_, "Move the cluster's own time to a later one"),
        },
    ),
    "why": Entry(lambda: why.why, "Say why an object is not done, and what would help"),
    "plan": Entry(
        lambda: plan.plan, "Show what a command would do: its steps, how long, whether it finishes"
    ),
    "fuzz": Entry(lambda: fuzz_command.fuzz, "Look for the order of things that breaks a workload"),
    "demo": Entry(
        lambda: demo_command.demo,
        "Show in a terminal what is rare here; broken clusters to repair",
        (),
        DEMO,
    ),
    "timeline": Entry(lambda: timeline.timeline, "Show what happened in the cluster"),
    "fork": Entry(lambda: state_folder.fork, "Copy a cluster to a new state folder, or to etcd"),
    "serve": Entry(
        lambda: serve.serve, "Serve the API of the cluster for kubectl and other clients"
    ),
    "envtest-assets": Entry(
        lambda: envtest_assets.envtest_assets, "Print the folder for envtest's KUBEBUILDER_ASSETS"
    ),
    "mcp": Entry(
        lambda: mcp_command.mcp, "Serve the cluster to an agent: tools to read and to rehearse"
    ),
    "fsck": Entry(lambda: state_folder.fsck, "Check the state folder"),
    "trust": Entry(lambda: trust.trust, "Trust a state folder that was made elsewhere"),
    "git": Entry(
        None,
        "Keep the state folder in a git repository",
        (),
        GIT,
        help_on_stdout=True,
        examples=_GIT_EXAMPLES,
    ),
    "__mcp": Entry(lambda: mcp_worker.mcp_worker, ""),
    "__complete": Entry(lambda: completion.complete, ""),
    "__completeNoDesc": Entry(lambda: completion.complete_without_descriptions, ""),
}

OWN_GROUP = "State Folder Commands"  # those that kubectl does not have
GROUPS: dict[str, tuple[str, ...]] = {
    OWN_GROUP: OWN_COMMANDS,
    "Basic Commands (Beginner)": ("create", "expose", "run", "set"),
    "Basic Commands (Intermediate)": ("explain", "get", "edit", "delete"),
    "Deploy Commands": ("rollout", "scale", "autoscale"),
    "Cluster Management Commands": (
        "certificate",
        "cluster-info",
        "top",
        "cordon",
        "uncordon",
        "drain",
        "taint",
    ),
    "Troubleshooting and Debugging Commands": ("describe", "events", "auth"),
    "Advanced Commands": ("diff", "apply", "patch", "replace", "wait", "kustomize"),
    "Settings Commands": ("label", "annotate", "completion"),
    "Other Commands": (
        "api-resources",
        "api-versions",
        "config",
        "help",
        "kuberc",
        "plugin",
        "version",
    ),
}
