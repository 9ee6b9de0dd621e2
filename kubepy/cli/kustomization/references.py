"""Follow names that changed to the objects that refer to them. Upstream: ``kustomize/api/filters/nameref``."""

from __future__ import annotations

from typing import Any

from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.fieldspecs import NAME_REFERENCES, FieldSpec, NameReference, split_path, visit
from kubepy.cli.kustomization.resources import KustomizedResource, ResMap


def fix_references(resources: ResMap) -> None:
    """Write the new names wherever the old ones stand. Raises CliError for a name that several objects have."""
    for referrer in resources:
        for reference in NAME_REFERENCES:
            for spec in reference.fields:
                if spec.is_for(referrer.original):
                    name_field = _NameField(resources, referrer, reference, spec)
                    visit(referrer.object, split_path(spec.path), name_field.update)


class _NameField:
    """A field of an object that holds the names of other objects."""

    def __init__(self, resources: ResMap, referrer: KustomizedResource, reference: NameReference,
                 spec: FieldSpec) -> None:
        self.resources = resources.all
        self.referrer = referrer
        self.reference = reference
        self.spec = spec

    def update(self, holder: dict[str, Any], key: str) -> None:
        """Replace the names in ``holder[key]``: a name, a map with one, or a list of either."""
        value = holder[key]
        holder[key] = [self._updated(item) for item in value] if isinstance(value, list) else self._updated(value)

    def _updated(self, value: Any) -> Any:
        if isinstance(value, str):
            referral = self._referral(value, self.resources, with_namespace=False)
            return referral.id.name if referral else value
        if not isinstance(value, dict):
            return value
        candidates = self.resources
        if namespace := value.get("namespace"):
            originally = [candidate for candidate in candidates if candidate.original.effective_namespace == namespace]
            candidates = originally or [candidate for candidate in candidates
                                        if candidate.id.effective_namespace == namespace]
        referral = self._referral(str(value.get("name", "")), candidates, with_namespace=True)
        if referral is None:
            return value
        new_namespace = {"namespace": referral.id.namespace} if referral.id.namespace else {}
        return {**value, "name": referral.id.name, **new_namespace}

    def _referral(self, name: str, candidates: list[KustomizedResource], *,
                  with_namespace: bool) -> KustomizedResource | None:
        """Return the object that had this name, or None. Raises CliError when several can be meant."""
        matching = [candidate for candidate in candidates if self._can_refer_to(candidate, name)]
        for or_none in (True, False):
            if len(matching) > 1:
                matching = [candidate for candidate in matching
                            if has_same_affixes(candidate, self.referrer, or_none=or_none)]
        if len({(match.id.name, match.id.namespace if with_namespace else "") for match in matching}) > 1:
            raise CliError(f"found multiple possible referrals: {', '.join(str(match.id) for match in matching)}")
        return matching[0] if matching else None

    def _can_refer_to(self, candidate: KustomizedResource, name: str) -> bool:
        """Return whether a candidate had the name, is of the right kind, and is in the namespace of the referrer."""
        previous = candidate.previous
        if not any(before.name == name for before in previous):
            return False
        if not any(before.is_selected(self.reference.group, "", self.reference.kind) for before in previous):
            return False
        role = self.referrer.object.get("roleRef")
        if self.spec.path == "roleRef/name" and isinstance(role, dict):
            group, kind = role.get("apiGroup", ""), role.get("kind", "")
            if not any(before.is_selected(group, "", kind) for before in previous):
                return False
        # Service accounts can be referred to from any namespace.
        if candidate.id.kind == "ServiceAccount" or self.referrer.id.is_cluster_scoped:
            return True
        return candidate.id.is_cluster_scoped or (
            candidate.id.effective_namespace == self.referrer.id.effective_namespace)


def has_same_affixes(left: KustomizedResource, right: KustomizedResource, *, or_none: bool) -> bool:
    """Return whether two objects went through the same kustomizations, as far as prefixes and suffixes tell.

    :param or_none: an object without prefixes (or suffixes) agrees with any other.
    """
    for ours, theirs in ((left.prefixes, right.prefixes), (left.suffixes, right.suffixes)):
        shorter, longer = sorted((ours, theirs), key=len)
        same_ending = longer[len(longer) - len(shorter):] == shorter if shorter else not longer
        if not (same_ending or (or_none and not shorter)):
            return False
    return True
