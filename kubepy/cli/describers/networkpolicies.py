"""NetworkPolicy: whom the selected pods may talk to, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.selectors import format_label_selector
from kubepy.cli.describers.writer import Surroundings, Writer, format_time, heading, labels_and_annotations

PAD = "    "


class Direction(NamedTuple):
    """The words of one direction of traffic, and where its rules have their peers."""

    name: str
    peers: str
    word: str
    end: str


INGRESS = Direction("ingress", "from", "From", "source")
EGRESS = Direction("egress", "to", "To", "destination")


def network_policy(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec = obj.get("spec") or {}
    heading(writer, obj)
    writer.field(0, "Created on", format_time(obj["metadata"].get("creationTimestamp")))
    labels_and_annotations(writer, obj)
    writer.line(0, "Spec:")
    selector = spec.get("podSelector") or {}
    writer.line(1, f"PodSelector: {PAD}" + (
        format_label_selector(selector) if selector.get("matchLabels") or selector.get("matchExpressions")
        else "<none> (Allowing the specific traffic to all pods in this namespace)"))
    types = spec.get("policyTypes") or []
    for direction in (INGRESS, EGRESS):
        if direction.name.capitalize() in types:
            writer.line(1, f"Allowing {direction.name} traffic:")
            _rules(lambda text: writer.line(0, PAD + text), spec.get(direction.name) or [], direction)
        else:
            writer.line(1, f"Not affecting {direction.name} traffic")
    writer.line(1, f"Policy Types: {', '.join(types) or '<none>'}")


def _rules(line: Callable[[str], None], rules: list[Object], direction: Direction) -> None:
    if not rules:
        line(f"<none> (Selected pods are isolated for {direction.name} connectivity)")
    for index, rule in enumerate(rules):
        if index:
            line("----------")
        for text in _ports(rule) or ["To Port: <any> (traffic allowed to all ports)"]:
            line(text)
        peers = rule.get(direction.peers)
        if not peers:
            line(f"{direction.word}: <any> (traffic not restricted by {direction.end})")
        for peer in peers or []:
            line(f"{direction.word}:")
            for text in _peer(peer):
                line(f"  {text}")


def _ports(rule: Object) -> list[str]:
    return [_port(one) for one in rule.get("ports") or []]


def _port(port: Object) -> str:
    protocol, first = port.get("protocol", "TCP"), port.get("port", "<nil>")
    if "endPort" in port:
        return f"To Port Range: {first}-{port['endPort']}/{protocol}"
    return f"To Port: {first}/{protocol}"


def _peer(peer: Object) -> list[str]:
    found = [f"{label}: {format_label_selector(peer[key])}"
             for label, key in (("NamespaceSelector", "namespaceSelector"), ("PodSelector", "podSelector"))
             if peer.get(key) is not None]
    if found or "ipBlock" not in peer:
        return found
    block = peer["ipBlock"]
    return ["IPBlock:", f"  CIDR: {block.get('cidr', '')}", f"  Except: {', '.join(block.get('except') or [])}"]
