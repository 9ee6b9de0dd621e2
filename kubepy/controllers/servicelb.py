"""Give Services of type LoadBalancer an address of the pool that ``kubepy.yaml`` names
(``loadBalancerPool``).

It does what an implementation on bare metal does; its events are MetalLB's. Without a pool it does
not run, and such Services stay pending, as in a cluster without a cloud. Upstream (of the part that
clouds share): ``cloud-provider/controllers/service``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import is_being_deleted, name_of, namespace_of
from kubepy.quoting import quote
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import SERVICES, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, UnfinishedSync, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import Service

LOAD_BALANCER = "LoadBalancer"
NO_ADDRESS = "no available IPs"
Pool = tuple[tuple[int, int], ...]


class AllocationError(UnfinishedSync):
    """No address can be given to a Service; the message says why."""


class ServiceLBController:
    """Reconciles Services of type LoadBalancer that name no class: classes belong to other
    implementations."""

    name = "service-lb-controller"

    def __init__(self, context: Context) -> None:
        self._pool = context.client.settings.networking.load_balancer_pool
        self._services = context.informers.lister(SERVICES)
        self._service_client = ResourceClient(context.client, SERVICES)
        self._recorder = Recorder(context.client, self.name)
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {SERVICES: self._service_changed}

    def _service_changed(self, event: WatchEvent) -> None:
        """Reconcile the Service, and those that wait for an address if it may have given up one."""
        old = cast("Service | None", event.old)
        new = cast("Service | None", event.new)
        if new is not None and is_balanced(new):
            self.queue.add(event.key)
        if old:
            has_given_up = addresses_of(old) != (addresses_of(new) if new else [])
        else:
            has_given_up = event.is_update
        if has_given_up:
            for service in self._services.list():
                if is_balanced(service) and not addresses_of(service):
                    self.queue.add(Key(SERVICES, namespace_of(service), name_of(service)))

    def sync(self, key: Key) -> None:
        service = self._services.get(key.namespace, key.name)
        if service is None or not is_balanced(service):
            return
        present = addresses_of(service)
        requested = service["spec"].get("loadBalancerIP", "")
        if present and requested in ("", *present):
            return
        try:
            address = self.allocate(key, requested)
        except AllocationError as error:
            self._recorder.event(
                service,
                "Warning",
                "AllocationFailed",
                f"Failed to allocate IP for {quote(f'{key.namespace}/{key.name}')}: {error}",
            )
            if present:
                self._set_ingress(service, "")
            return

        self._set_ingress(service, address)
        self._recorder.event(service, "Normal", "IPAllocated", f'Assigned IP ["{address}"]')

    def allocate(self, key: Key, requested: str) -> str:
        """Return the requested address, or the first that is free. Raises AllocationError."""
        owners = {
            address: f"{namespace_of(service)}/{name_of(service)}"
            for service in self._services.list()
            if (namespace_of(service), name_of(service)) != key[1:]
            for address in addresses_of(service)
        }
        if not requested:
            address = next(
                (address for address in addresses_in(self._pool) if address not in owners), None
            )
            if address is None:
                raise AllocationError(NO_ADDRESS)
            return address

        if not is_in_pool(requested, self._pool):
            raise AllocationError(f'["{requested}"] is not allowed in config')
        if requested in owners:
            raise AllocationError(
                f"can't change sharing key for {quote(f'{key.namespace}/{key.name}')}, address "
                f"also "
                f"in use by {owners[requested]}"
            )

        return requested

    def _set_ingress(self, service: Service, address: str) -> None:
        ingress = {"ingress": [{"ip": address, "ipMode": "VIP"}]} if address else {}
        self._service_client.update_status(
            service, {**(service.get("status") or {}), "loadBalancer": ingress}
        )


def is_balanced(service: Service) -> bool:
    spec = service["spec"]
    if spec.get("type") != LOAD_BALANCER:
        return False
    if spec.get("loadBalancerClass"):
        return False
    return not is_being_deleted(service)


def addresses_of(service: Service) -> list[str]:
    """Return the addresses and names that a load balancer has for a Service."""
    status = service.get("status") or {}
    load_balancer = status.get("loadBalancer") or {}
    addresses: list[str] = []
    for ingress in load_balancer.get("ingress") or ():
        addresses.append(ingress.get("ip") or ingress.get("hostname") or "")
    return addresses


def addresses_in(pool: Pool) -> Iterator[str]:
    """Yield the addresses of a pool, in its order; one that two of its entries have comes twice."""
    for first, last in pool:
        yield from (str(IPv4Address(number)) for number in range(first, last + 1))


def is_in_pool(address: str, pool: Pool) -> bool:
    try:
        number = int(IPv4Address(address))
    except ValueError:
        return False
    return any(first <= number <= last for first, last in pool)
