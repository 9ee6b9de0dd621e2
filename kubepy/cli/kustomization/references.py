"""Follow names that changed to the objects that refer to them. Upstream:
``kustomize/api/filters/nameref``."""

from __future__ import annotations

from typing import Any

from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.fieldspecs import FieldSpec, NameReference, apply
from kubepy.cli.kustomization.merges import text_of
from kubepy.cli.kustomization.resources import KustomizedResource, ResMap
from kubepy.quoting import quote


def fix_references(resources: ResMap, references: list[NameReference]) -> None:
    """Write the new names wherever the old ones stand. Raises CliError for a name that several
    objects have."""
    present = [(resource, resource.id) for resource in resources]
    places = [
        (
            resource,
            "" if known_id.is_cluster_scoped else known_id.effective_namespace,
            known_id.namespace,
        )
        for resource, known_id in present
    ]
    for referrer in resources:
        candidates = _candidates(places, referrer)
        for reference in references:
            for spec in reference.fields:
                if not spec.is_for(referrer.original):
                    continue
                try:
                    apply(
                        referrer,
                        [FieldSpec(spec.path)],
                        _NameField(candidates, referrer, reference, spec).update,
                    )
                except CliError as error:
                    raise CliError(
                        f"updating name reference in '{spec.path}' field of '{referrer.id}': "
                        f"{error}"
                    ) from None


def _candidates(
    places: list[tuple[KustomizedResource, str, str]], referrer: KustomizedResource
) -> list[KustomizedResource]:
    """Return the resources in reach of another: of its namespace, or of one that its subjects name.
    Raises CliError.

    :param places: all resources with their effective namespaces, "" for those that have none, and
        the written ones.
    """
    referrer_id = referrer.id
    if referrer_id.is_cluster_scoped:
        return [candidate for candidate, _, _ in places]
    namespaces = set()
    subjects = referrer.object.get("subjects") if referrer_id.kind == "RoleBinding" else ()
    for subject in subjects if isinstance(subjects, list) else ():
        if not isinstance(subject, dict):
            raise CliError(f"the subjects of {referrer_id} are no maps")
        if subject.get("kind") == "ServiceAccount" and "namespace" in subject:
            if not isinstance(subject["namespace"], str):
                raise CliError(
                    f"Invalid Input: namespace is blank for resource {quote(str(referrer_id))}\n"
                )
            namespaces.add(subject["namespace"])

    own = referrer_id.effective_namespace
    return [
        candidate
        for candidate, effective, written in places
        if not effective or written in namespaces or effective == own
    ]


class _NameField:
    """A field of an object that holds the names of other objects."""

    def __init__(
        self,
        candidates: list[KustomizedResource],
        referrer: KustomizedResource,
        reference: NameReference,
        spec: FieldSpec,
    ) -> None:
        self.resources = candidates
        self.referrer = referrer
        self.reference = reference
        self.spec = spec

    def update(self, holder: Any, key: Any) -> None:
        """Replace the names in ``holder[key]``: a name, a map with one, or a list of either. Raises
        CliError."""
        value = holder[key]
        holder[key] = (
            [self._updated(item) for item in value]
            if isinstance(value, list)
            else self._updated(value)
        )

    def _updated(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, list):
            raise CliError(f"{value} is expected to be either a string or a map of string")
        if not isinstance(value, dict):
            referral = self._referral(text_of(value), self.resources, with_namespace=False)
            if referral and referral.id.name != text_of(value):
                return referral.id.name
            return value

        if "name" not in value:
            raise CliError("path config error; no 'name' field in node")
        name = text_of(value["name"])
        candidates = self.resources
        if "namespace" in value:
            namespace = text_of(value["namespace"])
            originally = [
                candidate
                for candidate in candidates
                if candidate.original.effective_namespace == namespace
            ]
            candidates = originally or [
                candidate
                for candidate in candidates
                if candidate.id.effective_namespace == namespace
            ]

        referral = self._referral(name, candidates, with_namespace=True)
        if referral is None or (referral.id.name == name and not referral.id.namespace):
            return value
        new_namespace = {"namespace": referral.id.namespace} if referral.id.namespace else {}
        return {**value, "name": referral.id.name, **new_namespace}

    def _referral(
        self, name: str, candidates: list[KustomizedResource], *, with_namespace: bool
    ) -> KustomizedResource | None:
        """Return the object that had this name, or None. Raises CliError when several can be
        meant."""
        matching = [candidate for candidate in candidates if self._can_refer_to(candidate, name)]
        for or_none in (True, False):
            if len(matching) > 1:  # one alone need not have the prefixes of the referrer
                matching = [
                    candidate
                    for candidate in matching
                    if has_same_affixes(candidate, self.referrer, or_none=or_none)
                ]

        if (
            len(
                {
                    (match.id.name, match.id.namespace if with_namespace else "")
                    for match in matching
                }
            )
            > 1
        ):
            raise CliError(
                f"found multiple possible referrals: "
                f"{', '.join(str(match.id) for match in matching)}"
            )

        if matching:
            return matching[0]
        return None

    def _can_refer_to(self, candidate: KustomizedResource, name: str) -> bool:
        """Return whether a candidate had the name, is of the right kind, and is in the namespace of
        the referrer."""
        previous = candidate.previous
        if not any(before.name == name for before in previous):
            return False
        target = self.reference
        if not any(
            before.is_selected(target.group, target.version, target.kind) for before in previous
        ):
            return False

        role = self.referrer.object.get("roleRef")
        if (
            self.spec.path.endswith("roleRef/name")
            and isinstance(role, dict)
            and {"apiGroup", "kind"} <= set(role)
        ):
            group = role["apiGroup"] or ""
            kind = role["kind"] or ""
            if not any(before.is_selected(group, "", kind) for before in previous):
                return False

        # Service accounts can be referred to from any namespace.
        if candidate.id.kind == "ServiceAccount" or self.referrer.id.is_cluster_scoped:
            return True
        return candidate.id.is_cluster_scoped or (
            candidate.id.effective_namespace == self.referrer.id.effective_namespace
        )


def has_same_affixes(left: KustomizedResource, right: KustomizedResource, *, or_none: bool) -> bool:
    """Return whether two objects went through the same kustomizations, as far as prefixes and
    suffixes tell.

    :param or_none: an object without prefixes (or suffixes) agrees with any other.
    """
    for ours, theirs in ((left.prefixes, right.prefixes), (left.suffixes, right.suffixes)):
        shorter, longer = sorted((ours, theirs), key=len)
        same_ending = longer[len(longer) - len(shorter) :] == shorter if shorter else not longer
        if not (same_ending or (or_none and not shorter)):
            return False
    return True
