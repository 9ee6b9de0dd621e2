"""The file systems of containers: their volumes, parts of volumes, and what a runtime adds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kubepy.api.meta import Object
from kubepy.kubelet.containerfiles import dns_config, hosts_file
from kubepy.kubelet.environment import ContainerConfigError
from kubepy.kubelet.mounts import ContainerFiles, file_reader
from kubepy.kubelet.payloads import VolumeSources
from kubepy.kubelet.volumes import empty_tree, refresh, volume_tree
from kubepy.shell.files import FileError, FileSystem, Tree
from tests.kubelet.objects import NOW, new_node, new_pod

LATER = NOW + timedelta(minutes=5)
COLOURS: Object = {"name": "colours", "configMap": {"name": "colours"}}
SCRATCH: Object = {"name": "scratch", "emptyDir": {}}


def mount(name: str, path: str, **fields: Any) -> Object:
    return {"name": name, "mountPath": path, **fields}


def any_of(value: object) -> Any:
    """Return an object of the API for parameters that are typed more narrowly."""
    return value


class World:
    """A pod with a ConfigMap and an empty volume, and the files of its container."""

    def __init__(self, *mounts: Object, container: Object | None = None, **spec: Any) -> None:
        self.data = {"sky": "blue\n", "sea": "green\n"}
        self.container: Any = {
            "name": "c",
            "image": "c:1",
            "volumeMounts": list(mounts),
            **(container or {}),
        }
        self.pod = any_of(new_pod(containers=[self.container], volumes=[COLOURS, SCRATCH], **spec))
        self.pod["status"]["podIPs"] = [{"ip": "10.244.0.5"}]
        self.node = any_of(new_node())
        self.sources = VolumeSources(self._find, self.node)
        shown = volume_tree(self.pod, COLOURS, self.sources, NOW)
        assert shown is not None
        self.trees = {"colours": shown, "scratch": empty_tree(self.pod, SCRATCH, NOW)}

    def _find(self, resource: str, namespace: str, name: str) -> Object | None:
        return {"data": self.data}

    def maker(self, variables: dict[str, str] | None = None) -> ContainerFiles:
        return ContainerFiles(
            self.pod, self.container, self.node, self.trees, variables or {"POD": "web"}
        )

    def new(self) -> FileSystem:
        return self.maker().new({"/srv/index.html": "hello\n"}, NOW)

    def update(self, **data: str) -> None:
        self.data = data
        assert refresh(self.trees["colours"], self.pod, COLOURS, self.sources, LATER)


def problem_of(action: Any) -> str:
    with pytest.raises(FileError) as caught:
        action()
    return caught.value.problem


# --- volumes --------------------------------------------------------------------------------------


def test_volume_is_seen_at_its_mount_path_and_changes_with_it() -> None:
    world = World(mount("colours", "/etc/colours"))
    files = world.new()
    assert files.read("/etc/colours/sky") == b"blue\n"
    world.update(sky="grey\n")
    assert files.read("/etc/colours/sky") == b"grey\n"


def test_volume_that_shows_objects_cannot_be_written() -> None:
    files = World(mount("colours", "/etc/colours")).new()
    assert problem_of(lambda: files.write("/etc/colours/sky", b"", now=NOW)) == (
        "Read-only file system"
    )


def test_empty_volume_is_shared_and_written_unless_mounted_read_only() -> None:
    world = World(mount("scratch", "/a"), mount("scratch", "/b", readOnly=True))
    files = world.new()
    files.write("/a/file", b"x", now=NOW)
    assert files.read("/b/file") == b"x"
    assert problem_of(lambda: files.write("/b/file", b"", now=NOW)) == "Read-only file system"


def test_files_of_variables_are_read_from_volumes() -> None:
    world = World()
    FileSystem(world.trees["scratch"]).write("/env", b"A='a'", now=NOW)
    read_file = file_reader(world.trees)
    assert read_file("scratch", "env") == b"A='a'"
    assert read_file("colours", "sky") == b"blue\n"
    assert read_file("scratch", "none") is None
    assert read_file("none", "env") is None


def test_missing_tree_is_an_error_that_names_volume_and_container() -> None:
    world = World(mount("lost", "/a"))
    with pytest.raises(ContainerConfigError) as caught:
        world.new()
    assert str(caught.value) == 'cannot find volume "lost" to mount into container "c"'


# --- parts of volumes -----------------------------------------------------------------------------


def test_part_of_a_shown_volume_stays_as_it_was_at_the_start() -> None:
    world = World(mount("colours", "/etc/app/sky.conf", subPath="sky"))
    files = world.new()
    assert files.is_file("/etc/app/sky.conf")
    world.update(sky="grey\n", sea="green\n")
    assert files.read("/etc/app/sky.conf") == b"blue\n"
    root = Tree.from_json(files.root.to_json())
    assert world.maker().again(root).read("/etc/app/sky.conf") == b"blue\n"
    assert world.new().read("/etc/app/sky.conf") == b"grey\n"


def test_part_of_a_writable_volume_is_made_and_written_through() -> None:
    world = World(mount("scratch", "/data", subPath="db/files"))
    files = world.new()
    files.write("/data/file", b"x", now=NOW)
    assert FileSystem(world.trees["scratch"]).read("/db/files/file") == b"x"
    assert FileSystem(world.trees["scratch"]).stat("/db").mode == 0o777


def test_part_of_a_shown_volume_that_is_not_there_is_an_empty_directory() -> None:
    files = World(mount("colours", "/etc/none", subPath="none")).new()
    assert files.list("/etc/none") == []


def test_sub_path_expression_takes_variables_of_the_container() -> None:
    world = World(mount("scratch", "/logs", subPathExpr="$(POD)/logs"))
    world.new().write("/logs/one", b"1", now=NOW)
    assert FileSystem(world.trees["scratch"]).read("/web/logs/one") == b"1"


@pytest.mark.parametrize(("expression", "message"), [
    ("$(NONE)/$(GONE)", "missing value for GONE, NONE"),
    ("$(ROOT)", "error SubPath `/etc` must not be an absolute path"),
    ("$(UP)/x", "unable to provision SubPath `../x`: must not contain '..'"),
])  # fmt: skip
def test_sub_path_expression_that_leads_nowhere_is_an_error(expression: str, message: str) -> None:
    world = World(mount("scratch", "/logs", subPathExpr=expression))
    with pytest.raises(ContainerConfigError) as caught:
        world.maker({"ROOT": "/etc", "UP": ".."}).new({}, NOW)
    assert str(caught.value) == message


def test_sub_path_through_a_file_is_an_error() -> None:
    world = World(mount("scratch", "/data", subPath="file/dir"))
    FileSystem(world.trees["scratch"]).write("/file", b"", now=NOW)
    with pytest.raises(ContainerConfigError) as caught:
        world.new()
    assert str(caught.value) == (
        'failed to create subPath directory for volumeMount "scratch" of container "c"'
    )


# --- what a runtime adds --------------------------------------------------------------------------


def test_container_has_the_directories_and_devices_of_an_image() -> None:
    files = World().new()
    assert files.is_dir("/usr/local/bin")
    assert files.stat("/tmp").mode == 0o1777
    assert files.stat("/dev/null").kind == "c"
    assert files.read("/dev/termination-log") == b""
    assert files.read("/srv/index.html") == b"hello\n"
    assert files.read("/etc/hostname") == b"web\n"


def test_working_directory_is_made() -> None:
    assert World(container={"workingDir": "/srv/app"}).new().is_dir("/srv/app")


def test_read_only_layer_takes_the_termination_message_all_the_same() -> None:
    context = {"readOnlyRootFilesystem": True}
    world = World(mount("scratch", "/data"), container={"securityContext": context})
    files = world.new()
    assert problem_of(lambda: files.write("/tmp/x", b"", now=NOW)) == "Read-only file system"
    files.write("/data/x", b"", now=NOW)
    files.write("/dev/termination-log", b"done", now=NOW)
    root = Tree.from_json(files.root.to_json())
    assert world.maker().again(root).read("/dev/termination-log") == b"done"


def test_hosts_file_is_that_of_the_manifest_where_it_mounts_one() -> None:
    files = World(mount("colours", "/etc/hosts", subPath="sky")).new()
    assert files.read("/etc/hosts") == b"blue\n"


LOCAL = """\
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


def test_hosts_file_has_the_pod_and_its_aliases() -> None:
    aliases = [{"ip": "10.1.2.3", "hostnames": ["foo.remote", "bar.remote"]}]
    world = World(hostAliases=aliases)
    assert hosts_file(world.pod, world.node) == (
        f"# Kubernetes-managed hosts file.\n{LOCAL}10.244.0.5\tweb\n"
        "\n# Entries added by HostAliases.\n10.1.2.3\tfoo.remote\tbar.remote\n"
    )


def test_hosts_file_has_the_full_name_of_a_pod_with_a_subdomain() -> None:
    world = World(hostname="db-0", subdomain="db")
    last = hosts_file(world.pod, world.node).splitlines()[-1]
    assert last == "10.244.0.5\tdb-0.db.shop.svc.cluster.local\tdb-0"


def test_hosts_file_of_a_pod_on_the_network_of_its_node_is_that_of_the_node() -> None:
    world = World(hostNetwork=True)
    assert hosts_file(world.pod, world.node) == (
        f"# Kubernetes-managed hosts file (host network).\n{LOCAL}192.168.0.1\tnode-1\n"
    )


def resolv_conf(**spec: Any) -> str:
    return dns_config(World(**spec).pod).file()


CLUSTER_FIRST = (
    "search shop.svc.cluster.local svc.cluster.local cluster.local\n"
    "nameserver 10.96.0.10\noptions ndots:5\n"
)


@pytest.mark.parametrize(("spec", "file"), [
    ({}, CLUSTER_FIRST),
    ({"hostNetwork": True}, "search .\nnameserver 127.0.0.1\n"),
    ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, CLUSTER_FIRST),
    ({"dnsPolicy": "Default"}, "search .\nnameserver 127.0.0.1\n"),
    ({"dnsPolicy": "None", "dnsConfig": {
        "nameservers": ["192.0.2.1"], "searches": ["ns1.example", "my.example"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]}},
     "search ns1.example my.example\nnameserver 192.0.2.1\noptions ndots:2 edns0\n"),
    ({"dnsConfig": {"nameservers": ["10.96.0.10"], "options": [{"name": "ndots", "value": "1"}]}},
     CLUSTER_FIRST.replace("ndots:5", "ndots:1")),
])  # fmt: skip
def test_resolver_comes_from_policy_and_config(spec: Object, file: str) -> None:
    assert resolv_conf(**spec) == file


def test_resolver_is_cut_to_what_a_container_takes() -> None:
    searches = [f"s{number}.example" for number in range(40)]
    config = dns_config(
        World(dnsConfig={"nameservers": ["1.1.1.1"] * 2 + ["2.2.2.2", "3.3.3.3"],
                         "searches": searches}).pod
    )  # fmt: skip
    assert config.servers == ["10.96.0.10", "1.1.1.1", "2.2.2.2"]
    assert len(config.searches) == 32
    assert [problem.split(",")[0] for problem in config.problems] == [
        "Nameserver limits were exceeded",
        "Search Line limits were exceeded",
    ]
