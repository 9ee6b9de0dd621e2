"""Names that changed, followed to the objects that refer to them. Upstream: ``kustomize/api/filters/nameref``."""

from __future__ import annotations

from typing import Any

from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.fieldspecs import NAME_REFERENCES, FieldSpec, NameReference, split_path, visit
from kubepy.cli.kustomization.resources import Resource, Resources, is_selected


def fix_references(resources: Resources) -> None:
    """Put the new names wherever the old ones stand. Raises CliError for a name that may be of several objects."""
    for referrer in resources:
        for reference in NAME_REFERENCES:
            for spec in reference.fields:
                if spec.is_for(referrer.original):
                    _Referrer(resources, referrer, reference, spec).fix()


class _Referrer:
    """One field of one object that holds the name of another."""

    def __init__(self, resources: Resources, referrer: Resource, reference: NameReference, spec: FieldSpec) -> None:
        self.resources = resources.all
        self.referrer = referrer
        self.reference = reference
        self.spec = spec

    def fix(self) -> None:
        visit(self.referrer.object, split_path(self.spec.path), self._change)

    def _change(self, holder: dict[str, Any], key: str) -> None:
        value = holder[key]
        if isinstance(value, list):
            holder[key] = [self._changed(item) for item in value]
        else:
            holder[key] = self._changed(value)

    def _changed(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._changed_map(value)
        found = self._referral(value, self.resources, with_namespace=False) if isinstance(value, str) else None
        return found.id.name if found else value

    def _changed_map(self, value: dict[str, Any]) -> dict[str, Any]:
        """``{name, namespace}``: both follow the object."""
        candidates = self.resources
        if wanted := value.get("namespace"):
            originally = [one for one in candidates if one.original.place == wanted]
            candidates = originally or [one for one in candidates if one.id.place == wanted]
        found = self._referral(str(value.get("name", "")), candidates, with_namespace=True)
        if found is None:
            return value
        namespace = {"namespace": found.id.namespace} if found.id.namespace else {}
        return {**value, "name": found.id.name, **namespace}

    def _referral(self, name: str, candidates: list[Resource], *, with_namespace: bool) -> Resource | None:
        """The object that was called so, if there is just one that can be meant."""
        found = [one for one in candidates if self._can_be(one, name)]
        if len(found) > 1:
            found = [one for one in found if has_same_affixes(one, self.referrer, or_none=True)]
        if len(found) > 1:
            found = [one for one in found if has_same_affixes(one, self.referrer, or_none=False)]
        if len({(one.id.name, one.id.namespace if with_namespace else "") for one in found}) > 1:
            raise CliError(f"found multiple possible referrals: {', '.join(str(one.id) for one in found)}")
        return found[0] if found else None

    def _can_be(self, one: Resource, name: str) -> bool:
        if not any(before.name == name for before in one.previous):
            return False
        kinds = [before for before in one.previous
                 if is_selected(before, self.reference.group, "", self.reference.kind)]
        return bool(kinds) and self._fits_role(one) and self._is_near(one)

    def _fits_role(self, one: Resource) -> bool:
        """A binding says which kind of role it means."""
        role = self.referrer.object.get("roleRef")
        if self.spec.path != "roleRef/name" or not isinstance(role, dict):
            return True
        return any(is_selected(before, role.get("apiGroup", ""), "", role.get("kind", "")) for before in one.previous)

    def _is_near(self, one: Resource) -> bool:
        """In the same namespace, unless either is in none; service accounts can be anywhere."""
        if self.referrer.id.is_cluster_scoped or one.id.is_cluster_scoped or one.id.kind == "ServiceAccount":
            return True
        return one.id.place == self.referrer.id.place


def has_same_affixes(one: Resource, other: Resource, *, or_none: bool) -> bool:
    """Whether two objects went through the same kustomizations, as far as names tell."""
    pairs = ((one.prefixes, other.prefixes), (one.suffixes, other.suffixes))
    return all(_same_ending(left, right) or (or_none and not (left and right)) for left, right in pairs)


def _same_ending(one: list[str], other: list[str]) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer[len(longer) - len(shorter):] == shorter if shorter else not longer
