"""The webhooks of a source, whose programs are not at hand."""

from __future__ import annotations

from kubepy.importing.making import webhooks_of
from kubepy.storage import Key

CONFIGURATIONS = "validatingwebhookconfigurations.admissionregistration.k8s.io"


def test_services_and_urls_of_webhooks_allow_everything() -> None:
    webhooks = [
        {"name": "a.example.com", "clientConfig": {"service": {"namespace": "x", "name": "hook"}}},
        {"name": "b.example.com", "clientConfig": {"url": "https://10.0.0.1:8443/validate"}},
    ]
    objects = {Key(CONFIGURATIONS, "", "hooks"): {"webhooks": webhooks}}
    assert webhooks_of(objects) == {"x/hook": "allows", "https://10.0.0.1:8443": "allows"}
