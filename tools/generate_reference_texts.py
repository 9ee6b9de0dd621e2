"""What docs/reference says about names that the program has.

The names themselves are the program's. tools/generate_reference.py finds them there, and fails
where this file describes one that is gone, or leaves one out.
"""

from typing import NamedTuple


class Setting(NamedTuple):
    """A setting of ``kubepy.yaml``.

    :param text: what it says.
    :param example: a value that it takes, as YAML.
    :param page: the page of docs, with an anchor, that says more.
    """

    text: str
    example: str
    page: str = ""


SETTINGS = {
    "formatVersion": Setting("the version of the folder's form", "1", "state-folder.md"),
    "clock": Setting(
        "the moment at which the cluster's time stands, until a command moves it; without it the "
        "time is the system's",
        "2026-01-01T00:00:00Z",
        "time.md",
    ),
    "tick": Setting(
        "`reads`: the cluster's time goes on with each command that reads",
        "reads",
        "time.md#scripts-that-poll",
    ),
    "seed": Setting(
        "the number or string from which names, uids and ranges are drawn; without it they differ "
        "from run to run",
        "7",
        "time.md#same-bytes",
    ),
    "reconcile": Setting(
        "`never`: commands leave all work to `kubepy controller`", "never", "state-folder.md"
    ),
    "bootstrap": Setting(
        "`full`: what every cluster has (ServiceAccounts, roles, the Service `kubernetes`) is made "
        "as files",
        "full",
        "bootstrap.md",
    ),
    "networking.serviceSubnet": Setting(
        "the range of the addresses of Services", "10.96.0.0/12", "bootstrap.md"
    ),
    "networking.loadBalancerPool": Setting(
        "networks and ranges out of which Services of type LoadBalancer get an address",
        "[192.0.2.0/28, 192.0.2.16-192.0.2.31]",
        "bootstrap.md#addresses-of-services",
    ),
    "webhooks.SERVICE": Setting(
        "by `namespace/name` or `namespace/name:port` of a Service, the URL at which its webhooks "
        "answer, or `allows`",
        "http://127.0.0.1:9443",
        "webhooks.md",
    ),
    "kubelet.outcome": Setting(
        "the outcome of pods that have none of their own: as `kubepy.dev/outcome`",
        "crash-loop*2, ready",
        "kubelet.md#outcomes",
    ),
    "kubelet.readyAfter": Setting(
        "as `kubepy.dev/ready-after`", "2s..8s", "kubelet.md#pods-that-take-time"
    ),
    "kubelet.stopsAfter": Setting(
        "as `kubepy.dev/stops-after`", "1s..3s", "kubelet.md#pods-that-take-time"
    ),
    "kubelet.runsFor": Setting(
        "as `kubepy.dev/runs-for`, for the pods of Jobs",
        "30s",
        "kubelet.md#pods-that-end-by-themselves",
    ),
    "kubelet.exitCode": Setting(
        "as `kubepy.dev/exit-code`, for the pods of Jobs",
        "1",
        "kubelet.md#pods-that-end-by-themselves",
    ),
    "kubelet.references": Setting(
        "as `kubepy.dev/references`", "ignored", "kubelet.md#configmaps-and-secrets"
    ),
    "kubelet.containers": Setting(
        "`modelled`: containers do what their manifests say; `simple`: they run. `init` writes "
        "`modelled`",
        "modelled",
        "containers.md",
    ),
    "kubelet.rules": Setting(
        "what containers do that their manifests do not say: a list of rules, or the name of a "
        "file in the state folder",
        "rules.yaml",
        "rules.md",
    ),
    "kubelet.silentNodes": Setting(
        "nodes whose kubelets report nothing, so that they stay as they are",
        "[node-2]",
        "import.md",
    ),
    "kubelet.usage": Setting(
        "`unknown`: no metrics are served of pods that no annotation and no rule gives an amount",
        "unknown",
        "autoscaling.md",
    ),
    "admission.disablePlugins": Setting(
        "admission plugins that do not run", "[LimitRanger]", "simulated.md"
    ),
    "timeline.keep": Setting(
        "for how long the cluster remembers what has happened; 0: not at all", "7d", "timeline.md"
    ),
    "limits.pods": Setting("how many pods the cluster takes at most", "1000", "scale.md"),
    "faults.seed": Setting(
        "what the faults are drawn from, in place of the cluster's seed", "3", "faults.md"
    ),
    "faults.nodes": Setting("nodes that go down and come back", "[{downFor: 5m}]", "faults.md"),
    "faults.nodes[].names": Setting("these nodes; without it, all that are selected", "[node-1]"),
    "faults.nodes[].selector": Setting("nodes with these labels", "{matchLabels: {zone: a}}"),
    "faults.nodes[].rate": Setting("the share of outages that happen, from 0 to 1", "0.5"),
    "faults.nodes[].after": Setting("when the first outage begins", "1m..2m"),
    "faults.nodes[].downFor": Setting("how long an outage lasts; required", "2m..10m"),
    "faults.nodes[].every": Setting("from one planned outage to the next", "1h"),
    "faults.pods": Setting("pods with a bad outcome", "[{outcome: oom-killed}]", "faults.md"),
    "faults.pods[].namespaces": Setting("pods of these namespaces", "[default]"),
    "faults.pods[].selector": Setting("pods with these labels", "{matchLabels: {app: web}}"),
    "faults.pods[].nodes": Setting("pods on these nodes", "[node-1]"),
    "faults.pods[].ordinals": Setting(
        "pods with these numbers, of a StatefulSet or an indexed Job", "[0]"
    ),
    "faults.pods[].rate": Setting("the share of pods that it happens to", "0.1"),
    "faults.pods[].outcome": Setting("the outcome; required", "crash-loop*3, ready"),
    "faults.conflicts": Setting(
        "writes of controllers that fail with a conflict", "{rate: 0.1}", "faults.md"
    ),
    "faults.conflicts.rate": Setting("the share of writes; required", "0.1"),
    "faults.conflicts.controllers": Setting("of these controllers", "[deployment-controller]"),
    "faults.conflicts.resources": Setting("to these resources", "[pods]"),
    "faults.restarts": Setting(
        "controllers that end after a write, and begin anew", "{rate: 0.01}", "faults.md"
    ),
    "faults.restarts.rate": Setting("the share of writes; required", "0.01"),
    "faults.restarts.controllers": Setting("of these controllers", "[daemonset-controller]"),
    "faults.restarts.resources": Setting("to these resources", "[pods]"),
    "faults.lateEvents": Setting(
        "watch events that reach controllers late", "{rate: 0.1, delay: 5s}", "faults.md"
    ),
    "faults.lateEvents.rate": Setting("the share of events; required", "0.1"),
    "faults.lateEvents.delay": Setting("how late; required", "1s..10s"),
    "faults.lateEvents.controllers": Setting("to these controllers", "[job-controller]"),
    "faults.lateEvents.resources": Setting("about these resources", "[pods]"),
    "absent": Setting(
        "objects that the source of an import names and does not hold",
        "[{apiVersion: v1, kind: Secret, namespace: default, name: login}]",
        "import.md",
    ),
    "absent[].apiVersion": Setting("of the object; required", "v1"),
    "absent[].kind": Setting("of the object; required", "Secret"),
    "absent[].namespace": Setting("of the object", "default"),
    "absent[].name": Setting("of the object; required", "login"),
    "absent[].uid": Setting("of an owner, as owner references name it", "3f2a"),
    "absent[].remaining": Setting(
        "of a namespace that is being deleted: resources of which it still has objects",
        "widgets.example.org",
    ),
}

# The fields of a rule (``kubelet.rules``) are described by docs/rules.md, which a link leads to.
RULE_PAGE = "rules.md"


class Annotation(NamedTuple):
    """An annotation of kubepy's own.

    :param on: kinds of objects.
    :param values: what it takes, in words.
    """

    on: str
    values: str
    text: str
    page: str


ANNOTATIONS = {
    "kubepy.dev/outcome": Annotation(
        "pod; node",
        "an outcome, or several in order: `crash-loop*3, ready`; on a node `not-ready`",
        "how the pod fares; a node that does not become Ready",
        "kubelet.md#outcomes",
    ),
    "kubepy.dev/pod-outcome": Annotation(
        "node", "as `outcome` of a pod", "the outcome of the pods there", "kubelet.md#outcomes"
    ),
    "kubepy.dev/ready-after": Annotation(
        "pod, node",
        "`5s`, or a range `2s..8s`",
        "the time from a container's start to Ready",
        "kubelet.md#pods-that-take-time",
    ),
    "kubepy.dev/stops-after": Annotation(
        "pod, node",
        "`5s`, or a range `1s..4s`",
        "how long a deleted pod terminates",
        "kubelet.md#pods-that-take-time",
    ),
    "kubepy.dev/runs-for": Annotation(
        "pod, node",
        "`30s`, or a range",
        "the pod ends after this time; on a node, pods of Jobs",
        "kubelet.md#pods-that-end-by-themselves",
    ),
    "kubepy.dev/exit-code": Annotation(
        "pod, node",
        "0 to 255",
        "the code that the containers end with; on a node, pods of Jobs",
        "kubelet.md#pods-that-end-by-themselves",
    ),
    "kubepy.dev/references": Annotation(
        "pod, node",
        "`required`, `ignored`",
        "whether the ConfigMaps and Secrets that a pod reads must be there",
        "kubelet.md#configmaps-and-secrets",
    ),
    "kubepy.dev/termination": Annotation(
        "pod",
        "`stuck`",
        "the pod stays Terminating until it is deleted by force",
        "kubelet.md#pods",
    ),
    "kubepy.dev/log": Annotation(
        "pod", "lines", "what each container prints when it starts", "kubelet.md#logs"
    ),
    "kubepy.dev/log.NAME": Annotation(
        "pod", "lines", "the same for the container NAME", "kubelet.md#logs"
    ),
    "kubepy.dev/cpu": Annotation(
        "pod",
        "`250m`, or a series `100m@0s,400m@60s`",
        "what the containers use together",
        "autoscaling.md",
    ),
    "kubepy.dev/cpu.NAME": Annotation("pod", "likewise", "of the container NAME", "autoscaling.md"),
    "kubepy.dev/memory": Annotation(
        "pod",
        "`128Mi`, or a series `64Mi@0s,256Mi@60s`",
        "what the containers use together",
        "autoscaling.md",
    ),
    "kubepy.dev/memory.NAME": Annotation(
        "pod", "likewise", "of the container NAME", "autoscaling.md"
    ),
    "kubepy.dev/down-until": Annotation(
        "node",
        "a time: `2026-01-01T01:00:00Z`",
        "the kubelet reports nothing until then",
        "kubelet.md#nodes",
    ),
}
# Names below kubepy.dev/ that are no annotations of users: a provisioner; what kubepy sets and
# takes away again in one step.
OTHER_NAMES = {"kubepy.dev/simulated", "kubepy.dev/looked-into", "kubepy.dev/touched"}

# Environment variables, with their page.
ENVIRONMENT = {
    "KUBEPY_STATE": (
        "the state folder, or the address of an etcd, where `--state` names none",
        "state-folder.md",
    ),
    "KUBEPY_RECONCILE": (
        "`auto` or `never`: whether commands run the controllers",
        "state-folder.md",
    ),
    "KUBEPY_MUST_EXIST": ("`1`: no command makes a cluster where there is none", "commands.md"),
    "KUBEPY_TRUST": (
        "`1`: every state folder counts as this user's own",
        "state-folder.md#folders-that-were-made-elsewhere",
    ),
    "KUBEPY_CONTAINERS": (
        "`modelled` or `simple`: how the containers of new clusters live",
        "containers.md",
    ),
    "KUBEPY_NOTES": (
        "`all` or `none`: whether commands say on stderr of which containers nothing is known; "
        "without it, on a terminal only",
        "containers.md",
    ),
    "KUBEPY_TRACEBACK": ("`1`: an internal error shows its traceback", "troubleshooting.md"),
    "KUBEPY_ENVTEST_CONTROLLERS": (
        "the controllers beside the API server of envtest",
        "envtest.md",
    ),
    "KUBEPY_ENVTEST_CLOCK": ("the time at which the cluster of envtest begins", "envtest.md"),
    "KUBEPY_ENVTEST_TIME": (
        "`when-idle`: the time of envtest's cluster goes on while nobody asks",
        "envtest.md",
    ),
    "KUBEPY_ETCD_CA": ("the file of the CA of an etcd", "etcd.md"),
    "KUBEPY_ETCD_CERT": ("the file of the client's certificate", "etcd.md"),
    "KUBEPY_ETCD_KEY": ("the file of its key", "etcd.md"),
    "KUBEPY_ETCD_USER": ("a user of etcd", "etcd.md"),
    "KUBEPY_ETCD_PASSWORD": ("that user's password", "etcd.md"),
    "KUBEPY_TOKEN": ("the token with which a job comments on a pull request", "pull-requests.md"),
    "KUBEPY_PULL_REQUEST": ("the number of the pull request, on GitHub", "pull-requests.md"),
    "GITHUB_API_URL": ("set by GitHub's runners", "pull-requests.md"),
    "GITHUB_REPOSITORY": ("set by GitHub's runners", "pull-requests.md"),
    "CI_API_V4_URL": ("set by GitLab's runners", "pull-requests.md"),
    "CI_MERGE_REQUEST_IID": ("set by GitLab's runners", "pull-requests.md"),
    "CI_PROJECT_ID": ("set by GitLab's runners", "pull-requests.md"),
    "KUBERC": ("the file of kubectl's preferences, or `off`", "commands.md"),
    "KUBECTL_KUBERC": ("`false`: no preferences are read", "commands.md"),
    "KUBECTL_EXTERNAL_DIFF": ("the program of `diff`", "commands.md"),
    "KUBE_EDITOR": ("the editor of `edit`, before `EDITOR`", "commands.md"),
    "EDITOR": ("the editor of `edit`; without it, `vi`", "commands.md"),
    "GIT_INDEX_FILE": ("set by git while a hook or filter runs", "git.md"),
    "XDG_STATE_HOME": (
        "where the key lies by which a user's own state folders are known; `~/.local/state`",
        "state-folder.md#folders-that-were-made-elsewhere",
    ),
    "XDG_CACHE_HOME": ("where `envtest-assets` makes its folder; `~/.cache`", "envtest.md"),
    "NO_COLOR": ("set to anything: no colours on a terminal", "timeline.md"),
    "TERM": ("`dumb`: no colours, no line of progress", "timeline.md"),
    "TZ": ("the time zone of scripts that `cluster.shell` runs", "python.md"),
    "LANG": ("the language of kubectl's help, and the terminal's encoding", "commands.md"),
    "LC_ALL": ("before `LC_CTYPE`, `LC_MESSAGES` and `LANG`", "commands.md"),
    "LC_CTYPE": ("the terminal's encoding", "commands.md"),
    "LC_MESSAGES": ("the language of kubectl's help", "commands.md"),
    "PYTHONIOENCODING": ("the encoding of output, as for every program in Python", "commands.md"),
}
# Variables that kubepy reads and that say nothing about kubepy: where programs and temporary files
# are, the variables of modelled containers, what Python sets for itself.
OTHER_VARIABLES = {"PATH", "SHELL", "TEMP", "HOSTNAME", "PYTHONSAFEPATH", "_"}


class FileRow(NamedTuple):
    """Files of a state folder, by a pattern of their paths.

    :param kept: who should keep it: git, this machine, or nobody.
    """

    pattern: str
    text: str
    kept: str


GIT, MACHINE, NOBODY = "in git", "on this machine", "while a command runs"
FILES = (
    FileRow("kubepy.yaml", "the [settings](settings.md) of the cluster", GIT),
    FileRow(".gitignore", "leaves `.kubepy/` out of git", GIT),
    FileRow(
        ".gitattributes",
        "how git merges objects, if [`kubepy git setup`](../git.md) wrote it",
        GIT,
    ),
    FileRow("cluster/*/*.yaml", "an object without a namespace: `cluster/nodes/node-1.yaml`", GIT),
    FileRow(
        "namespaces/*/*/*.yaml",
        "an object of a namespace: `namespaces/default/deployments.apps/web.yaml`",
        GIT,
    ),
    FileRow("cluster/*/.managed/*.yaml", "the managers of an object that was applied", GIT),
    FileRow("namespaces/*/*/.managed/*.yaml", "the same for an object of a namespace", GIT),
    FileRow("volumes/*/files/*", "what pods have written into a PersistentVolume", GIT),
    FileRow("volumes/*/volume.json", "modes, times and links of these files", GIT),
    FileRow(
        ".kubepy/index.db",
        "an index of the objects, the log of changes, events, Leases, the timeline (SQLite, with "
        "`-wal` and `-shm` beside it)",
        MACHINE,
    ),
    FileRow(".kubepy/index.db-*", "parts of the index that SQLite keeps", NOBODY),
    FileRow(".kubepy/reserve", "room for deletions on a full disk", MACHINE),
    FileRow(".kubepy/origin", "whose folder it is", MACHINE),
    FileRow(".kubepy/marks", "which files of `.kubepy/` this user has made", MACHINE),
    FileRow(".kubepy/marks.lock", "held while marks are written", NOBODY),
    FileRow(".kubepy/lock", "held by the process that writes", NOBODY),
    FileRow(".kubepy/manager.lock", "held by the process that runs the controllers", NOBODY),
    FileRow(".kubepy/keys.lock", "held while a server makes its keys", NOBODY),
    FileRow(".kubepy/config", "[contexts](../state-folder.md#contexts)", MACHINE),
    FileRow(".kubepy/failed-run", "the command that goes on with a run under faults", MACHINE),
    FileRow(".kubepy/kubeconfig", "a kubeconfig of [`kubepy serve`](../serve.md)", MACHINE),
    FileRow(".kubepy/token", "the administrator's token at the server", MACHINE),
    FileRow(".kubepy/ca.crt", "the certificate of the server's CA", MACHINE),
    FileRow(".kubepy/ca.key", "its key", MACHINE),
    FileRow(".kubepy/apiserver.crt", "the server's certificate", MACHINE),
    FileRow(".kubepy/apiserver.key", "its key", MACHINE),
    FileRow(".kubepy/sa.key", "the key that signs the tokens of ServiceAccounts", MACHINE),
    FileRow(
        ".kubepy.untrusted/*",
        "a `.kubepy/` that came from elsewhere, and has no effect",
        MACHINE,
    ),
)


class ExitStatus(NamedTuple):
    """An exit status, and a line for a shell that ends with it in a new cluster with three nodes.

    :param commands: whose status it is; "" for all.
    :param example: "" where it needs a signal.
    """

    status: int
    commands: str
    text: str
    example: str


EXIT_STATUSES = (
    ExitStatus(0, "", "done", "kubepy get nodes"),
    ExitStatus(1, "", "an error, which is on stderr", "kubepy get pod missing"),
    ExitStatus(
        1,
        "fsck",
        "something is wrong in the folder",
        "touch state/cluster/nodes/odd.yaml && kubepy fsck",
    ),
    ExitStatus(
        1, "auth can-i", "the answer is no", "kubepy auth can-i delete pods --as=someone -q"
    ),
    ExitStatus(
        1,
        "rollout status, wait",
        "the time of `--timeout` has passed, or the rollout has failed",
        "kubepy wait node/node-1 --for=condition=Odd --timeout=1s",
    ),
    ExitStatus(
        1,
        "diff",
        "there are differences",
        "kubepy create ns a --dry-run=client -o yaml | kubepy diff -f -",
    ),
    ExitStatus(2, "diff", "an error", "kubepy diff -f missing.yaml"),
    ExitStatus(
        1,
        "git resolve",
        "conflicts are left, or this is no git repository",
        "kubepy git resolve",
    ),
    ExitStatus(0, "plan", "everything finishes, and nothing is hurt", "kubepy plan create ns a"),
    ExitStatus(
        2,
        "plan",
        "something does not finish",
        "kubepy create deployment web --image=web && "
        "kubepy plan set image deployment/web web=Web:2",
    ),
    ExitStatus(
        3,
        "plan",
        "everything finishes, and something is hurt",
        "kubepy create deployment web --image=web && kubepy rollout status deployment/web && "
        "kubepy plan delete pods --all",
    ),
    ExitStatus(
        0,
        "why",
        "the object is where it should be",
        "kubepy why node/node-1",
    ),
    ExitStatus(
        2,
        "why",
        "it is stuck",
        "kubepy create deployment web --image=web && "
        "kubepy set image deployment/web web=Web:2 && kubepy why deployment/web",
    ),
    ExitStatus(
        3,
        "why",
        "it is on its way",
        "kubepy create job slow --image=busybox -- sleep 600 && kubepy why job/slow",
    ),
    ExitStatus(
        2,
        "fuzz",
        "a check was violated",
        "echo '- {name: none, always: pods.size() == 0}' > checks.yaml && "
        "kubepy fuzz --check=checks.yaml --seeds=0..0 -- run web --image=web",
    ),
    ExitStatus(
        7,
        "exec, run -i",
        "the status of the program in the container",
        "kubepy run box --image=busybox --command -- sleep 600 && "
        "kubepy wait pod/box --for=condition=Ready && kubepy exec box -- sh -c 'exit 7'",
    ),
    ExitStatus(130, "", "Ctrl-C (128 + 2)", ""),
    ExitStatus(143, "controller, serve, clock", "SIGTERM (128 + 15)", ""),
)
