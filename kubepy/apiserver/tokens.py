"""Bearer tokens: those of ServiceAccounts, which the API server itself issues and accepts, and
known ones.

A token of the TokenRequest API is a JSON Web Token, signed with ES256: upstream takes RSA and
elliptic curves, and a key of P-256 is made at once, where one of RSA takes a tenth of a second. A
token in a Secret (a *legacy* one) is accepted while the Secret has it. Times are the cluster's.
Upstream: ``pkg/serviceaccount``, ``pkg/registry/core/serviceaccount/storage/token.go``,
``pkg/kubeapiserver/authenticator``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from kubepy.api import errors
from kubepy.api.clock import EPOCH, format_time, later, parse_time
from kubepy.api.meta import Object, name_of, namespace_of, uid_of
from kubepy.api.scheme import Resource
from kubepy.apiserver.authorization import (
    ACCOUNT_PREFIX,
    ALL_AUTHENTICATED,
    INVALID_TOKEN,
    TokenError,
    account_groups,
    new_user,
    split_account,
)
from kubepy.apiserver.bootstrap import root_ca
from kubepy.apiserver.podtokens import PodToken
from kubepy.apiserver.request import Request
from kubepy.apiserver.requests.creation import tracked_creation
from kubepy.apiserver.requests.decoding import decode, ensure_namespace
from kubepy.apiserver.server import Server
from kubepy.quoting import quote

TOKEN_REQUEST = Resource("tokenrequests", "TokenRequest", "authentication.k8s.io")
ISSUER, LEGACY_ISSUER = "https://kubernetes.default.svc.cluster.local", "kubernetes/serviceaccount"
AUDIENCES = (ISSUER,)  # of the API server itself
DEFAULT_SECONDS, MIN_SECONDS, MAX_SECONDS = 3600, 600, 1 << 32
# The kubelet asks for tokens of this life for pods: those are to work for a year, and to warn after
# the hour.
WARN_SECONDS, EXTENDED_SECONDS = 3607, 365 * 24 * 3600
LEEWAY = 60  # seconds by which clocks may differ
CLAIM = "kubernetes.io/serviceaccount/"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
LEGACY_SIGNATURE_BYTES = 256
EXTRA = "authentication.kubernetes.io/"

# By OpenSSL's names of curves: their names, and those of their signatures, in JSON Web Keys, and
# the names of the hashes in `cryptography`.
_CURVES = {
    "secp256r1": ("P-256", "ES256", "SHA256"),
    "secp384r1": ("P-384", "ES384", "SHA384"),
    "secp521r1": ("P-521", "ES512", "SHA512"),
}
_PART = re.compile(r"[A-Za-z0-9_-]*").fullmatch
_PEM_BLOCK = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL)

Get = Callable[..., Object]
Say = Callable[[str], None]


class Authenticated(NamedTuple):
    """The user that a token stands for, and those of the wanted audiences that it is for."""

    user: Object
    audiences: list[str]


# --- keys -----------------------------------------------------------------------------------------


class SigningKey:
    """A key that signs tokens: of RSA (RS256), or of a curve (ES256, ES384, ES512).

    :param pem: the private key.
    :ivar public: the key that its signatures are checked with.

    Raises ValueError for what is no such key.
    """

    def __init__(self, pem: bytes) -> None:
        from cryptography.hazmat.primitives import (
            serialization,
        )  # only servers, and `create token`, sign anything

        self._key: Any = serialization.load_pem_private_key(pem, None)
        self.public = VerifyingKey(self._key.public_key())

    def sign(self, claims: Mapping[str, Any]) -> str:
        """Return a token with these claims: the same one each time."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        public = self.public
        header = {"alg": public.algorithm, "kid": public.id}
        signed = f"{json_part(header)}.{json_part(claims)}"
        if not public.coordinate_bytes:
            signature = self._key.sign(signed.encode(), padding.PKCS1v15(), public.hash)
            return f"{signed}.{url_safe(signature)}"
        try:
            algorithm = ec.ECDSA(public.hash, deterministic_signing=True)
        except UnsupportedAlgorithm:  # by an OpenSSL before 3.2: each signature is another one
            algorithm = ec.ECDSA(public.hash)
        r, s = utils.decode_dss_signature(self._key.sign(signed.encode(), algorithm))
        halves = (number.to_bytes(public.coordinate_bytes) for number in (r, s))
        return f"{signed}.{url_safe(b''.join(halves))}"


class VerifyingKey:
    """A public key that signatures of tokens are checked with.

    :param key: a key of ``cryptography``, RSA or of a curve.
    :ivar id: a digest of it.
    :ivar algorithm: the name of its signatures in a token.
    :ivar coordinate_bytes: the length of each half of a signature; 0 for RSA.

    Raises ValueError for another kind of key.
    """

    def __init__(self, key: Any) -> None:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, rsa

        self._key = key
        self.hash: Any = hashes.SHA256()
        if isinstance(key, rsa.RSAPublicKey):
            self.algorithm, self.coordinate_bytes = "RS256", 0
        elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
            self._curve, self.algorithm, hash_name = _CURVES[key.curve.name]
            self.coordinate_bytes = (key.curve.key_size + 7) // 8
            self.hash = getattr(hashes, hash_name)()
        else:
            raise ValueError("must be a key of RSA or of a curve P-256, P-384, P-521")
        public = key.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.id = url_safe(hashlib.sha256(public).digest())

    def is_signature(self, signed: str, signature: bytes) -> bool:
        """Tell whether a signature is one of a text by this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        try:
            if not self.coordinate_bytes:
                self._key.verify(signature, signed.encode(), padding.PKCS1v15(), self.hash)
                return True
            half = self.coordinate_bytes
            if len(signature) != 2 * half:
                return False
            r, s = int.from_bytes(signature[:half]), int.from_bytes(signature[half:])
            encoded = utils.encode_dss_signature(r, s)
            self._key.verify(encoded, signed.encode(), ec.ECDSA(self.hash))
        except InvalidSignature:
            return False

        return True

    def web_key(self) -> Object:
        """Return the key as a JSON Web Key."""
        numbers = self._key.public_numbers()
        if not self.coordinate_bytes:
            values = {"n": _unsigned(numbers.n), "e": _unsigned(numbers.e)}
            return {
                "use": "sig",
                "kty": "RSA",
                "kid": self.id,
                "alg": self.algorithm,
                **{name: url_safe(value) for name, value in values.items()},
            }
        x, y = (
            url_safe(number.to_bytes(self.coordinate_bytes)) for number in (numbers.x, numbers.y)
        )
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": self._curve,
            "alg": self.algorithm,
            "x": x,
            "y": y,
        }


def _unsigned(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)


def verifying_keys(pem: bytes) -> list[VerifyingKey]:
    """Read the keys of a file: public keys, private ones, certificates (``ParsePublicKeysPEM``).
    Raises ValueError where there is none."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    keys: list[VerifyingKey] = []
    for block in _PEM_BLOCK.findall(pem):
        if b"BEGIN CERTIFICATE-" in block:
            keys.append(VerifyingKey(x509.load_pem_x509_certificate(block).public_key()))
        elif b"PRIVATE KEY-" in block:
            keys.append(SigningKey(block).public)
        elif b"PUBLIC KEY-" in block:
            keys.append(VerifyingKey(serialization.load_pem_public_key(block)))
    if not keys:
        raise ValueError("data does not contain any valid RSA or ECDSA public keys")
    return keys


def url_safe(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def json_part(content: Mapping[str, Any]) -> str:
    """Return a part of a token."""
    return url_safe(json.dumps(content, separators=(",", ":")).encode())


def unsigned(claims: Mapping[str, Any]) -> str:
    """Return a token with these claims that no server accepts."""
    header = {"alg": "none", "typ": "JWT"}
    return f"{json_part(header)}.{json_part(claims)}."


def openid_configuration(issuer: str, jwks_uri: str, keys: Iterable[VerifyingKey]) -> Object:
    """Return what ``/.well-known/openid-configuration`` says about the tokens."""
    return {
        "issuer": issuer,
        "jwks_uri": jwks_uri,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key.algorithm for key in keys}),
    }


# --- tokens ---------------------------------------------------------------------------------------


class WebToken(NamedTuple):
    """A JSON Web Token as it was sent: nothing says yet that its claims are true."""

    text: str
    key_id: str
    claims: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> WebToken | None:
        """Read a token, None for a text that is none of the kind that API servers issue."""
        parts = text.split(".")
        try:
            header, claims = (json.loads(_decoded(part)) for part in parts[:2])
            if len(parts) != 3 or not isinstance(header, dict) or not isinstance(claims, dict):
                return None
            json.dumps(claims, ensure_ascii=False).encode()  # no UTF-8 in it: a ValueError
            return cls(text, str(header.get("kid", "")), claims)
        except (ValueError, RecursionError):
            return None

    def claim(self, name: str) -> str:
        value = self.claims.get(name)
        return value if isinstance(value, str) else ""

    def reference(self, name: str) -> Mapping[str, Any] | None:
        """Return the object that the token is about or bound to, as ``kubernetes.io`` names it."""
        private = self.claims.get("kubernetes.io")
        reference = private.get(name) if isinstance(private, dict) else None
        return reference if isinstance(reference, dict) else None

    def time(self, name: str) -> float | None:
        value = self.claims.get(name)
        return float(value) if isinstance(value, int | float) else None

    def is_signed_by(self, key: VerifyingKey) -> bool:
        signed, _, signature = self.text.rpartition(".")
        try:
            return key.is_signature(signed, _decoded(signature))
        except ValueError:
            return False


def _decoded(part: str) -> bytes:
    """Decode a part of a token: base64 for URLs, without padding. Raises ValueError."""
    if not _PART(part):
        raise ValueError("a part of a token is no base64 for URLs")
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


class Issuer(NamedTuple):
    """Who issues tokens, and the audiences of the API server, which has asked him to."""

    name: str = ISSUER
    audiences: Sequence[str] = AUDIENCES

    def claims(
        self,
        private: Object,
        audiences: Sequence[str],
        issued: int,
        seconds: int,
        token_id: str,
    ) -> Object:
        """Return the claims of a token (``Claims`` in ``pkg/serviceaccount``).

        :param private: those of Kubernetes: the account, and what the token is bound to.
        :param issued: in seconds since the epoch.
        """
        expires = issued + seconds
        is_for_server = set(audiences) <= set(self.audiences)
        if "pod" in private and seconds == WARN_SECONDS and is_for_server:
            private = {**private, "warnafter": expires}
            expires = issued + EXTENDED_SECONDS
        name = private["serviceaccount"]["name"]
        return {
            "aud": list(audiences),
            "exp": expires,
            "iat": issued,
            "iss": self.name,
            "jti": token_id,
            "kubernetes.io": private,
            "nbf": issued,
            "sub": f"{ACCOUNT_PREFIX}{private['namespace']}:{name}",
        }

    def claims_of_pod(self, token: PodToken, issued: int, account: Object) -> Object:
        """Return the claims of a token in a volume of a pod.

        :param account: the name and the uid of its ServiceAccount.
        """
        private = {
            "namespace": token.namespace,
            "node": token.node,
            "pod": token.pod,
            "serviceaccount": account,
        }
        return self.claims(
            private,
            [token.audience] if token.audience else self.audiences,
            issued,
            token.seconds,
            _drawn_id(token, issued),
        )


class Tokens:
    """Issues tokens, and finds out whose a token is.

    :param get: returns an object by resource and name, and ``namespace``; raises NotFound.
    :ivar known: tokens that are not those of a ServiceAccount, with their users.
    :ivar key: signs the tokens of a server; None: the key is the one that the cluster has itself
        (``kubepy.apiserver.accountkeys``).
    :ivar other_keys: those by which tokens may be signed, besides the key (of a server before).
    :ivar issuers: who may have issued a token; the first one issues them here.
    :ivar audiences: those of the API server itself: the issuer of a cluster, unless a server sets
        others.
    """

    def __init__(self, server: Server, get: Get) -> None:
        self._server = server
        self._get = get
        self.known: dict[str, Object] = {}
        self.key: SigningKey | None = None
        self._loaded: SigningKey | None = None
        self.other_keys: Sequence[VerifyingKey] = ()
        self.issuers: Sequence[str] = (ISSUER,)
        self.audiences: Sequence[str] = AUDIENCES

    def signing_key(self, say: Say) -> SigningKey | None:
        """Return the key that signs tokens, which is made where a cluster in a folder has none yet;
        None without the package that signs. Raises FolderError, LockTimeoutError.

        :param say: is told if a key had to be made anew.
        """
        if self.key is not None:
            return self.key
        return self._own_key(lambda: self._server.account_keys.made(say))

    def _known_key(self) -> SigningKey | None:
        """Return the key that has signed what tokens there are; None where there is none yet.
        Raises FolderError."""
        if self.key is not None:
            return self.key
        return self._own_key(self._server.account_keys.known)

    def _own_key(self, load: Callable[[], bytes]) -> SigningKey | None:
        if self._loaded is None:
            try:
                pem = load()
            except ImportError as error:
                if error.name != "cryptography":
                    raise
                return None
            if pem:
                self._loaded = SigningKey(pem)
        return self._loaded

    def public_keys(self) -> list[VerifyingKey]:
        """Return the keys that tokens are checked with, each once. Raises FolderError."""
        key = self._known_key()
        if key is None:
            return []
        keys = {key.id: key for key in (key.public, *self.other_keys)}
        return list(keys.values())

    # --- issuing

    @property
    def _issuer(self) -> Issuer:
        return Issuer(self.issuers[0], self.audiences)

    def create(self, request: Request, body: Object) -> Object:
        """Issue a token for the ServiceAccount that a request names; returns the TokenRequest with
        its status.

        Raises BadRequest, NotFound, Invalid, Conflict.
        """
        context = request.require_context()
        wanted = decode(self._server, TOKEN_REQUEST, body, request.write_options, context.warn)
        metadata, spec = wanted["metadata"], wanted.setdefault("spec", {})
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = DEFAULT_SECONDS
        if metadata.get("name", request.name) != request.name:
            raise _invalid(
                "metadata.name",
                metadata["name"],
                "must match the service account name if specified",
                request.name,
            )

        ensure_namespace(metadata, request.namespace)
        account = self._get("serviceaccounts", request.name, namespace=request.namespace)
        if metadata.get("uid") and metadata["uid"] != uid_of(account):
            raise errors.conflict(
                "TokenRequest.authentication.k8s.io",
                request.name,
                f"the UID in the token request "
                f"({metadata['uid']}) does not match the UID of the service account "
                f"({uid_of(account)})",
            )

        if manager := request.write_options.field_manager:
            metadata |= self._managed_fields(wanted, manager)
        spec["audiences"] = spec.get("audiences") or list(self.audiences)
        seconds = spec["expirationSeconds"]
        now = context.clock.now()
        wanted["metadata"] = {
            **metadata,
            "name": name_of(account),
            "namespace": request.namespace,
            "uid": uid_of(account),
            "creationTimestamp": format_time(now),
        }
        if seconds < MIN_SECONDS:
            raise _invalid(
                "spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"
            )

        if seconds > MAX_SECONDS:
            raise _invalid(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            )

        bound = self._bound_objects(account, spec.setdefault("boundObjectRef", None))
        private = {"namespace": request.namespace, **bound, "serviceaccount": _reference(account)}
        token_id = context.ids.uid("tokens", request.namespace, request.name, number=0)
        claims = self._issuer.claims(
            private,
            spec["audiences"],
            _unix(now),
            seconds,
            token_id,
        )
        key = self.signing_key(context.warn)
        if key is None:
            raise errors.internal_error("failed to generate token: there is no key to sign it")
        wanted["status"] = {
            "token": key.sign(claims),
            "expirationTimestamp": format_time(later(now, spec["expirationSeconds"])),
        }
        return wanted

    def of_pod(self, token: PodToken, now: datetime, say: Say) -> str:
        """Return the token that the file of a pod has: the same one until the kubelet renews it.
        Without the package that signs, its signature is empty. Raises FolderError,
        LockTimeoutError.

        :param say: is told if a key had to be made anew.
        """
        issued = token.last_issued(now)
        account = self._account_before(token, issued)
        claims = self._issuer.claims_of_pod(token, issued, account)
        key = self.signing_key(say)
        return unsigned(claims) if key is None else key.sign(claims)

    def _account_before(self, token: PodToken, issued: int) -> Object:
        """Return what a token that was issued at a time says of its account: one that came later
        has its name alone."""
        try:
            account = self._get("serviceaccounts", token.account, namespace=token.namespace)
        except errors.NotFound:
            return {"name": token.account, "uid": ""}
        created = account["metadata"].get("creationTimestamp")
        if created and _unix(parse_time(created)) > issued:
            return {"name": token.account, "uid": ""}
        return _reference(account)

    def _managed_fields(self, wanted: Object, manager: str) -> Object:
        strategy, now = self._server.strategy(TOKEN_REQUEST), self._server.clock.timestamp()
        spec = {field: value for field, value in wanted["spec"].items() if value is not None}
        tracked = tracked_creation(strategy, {**wanted, "spec": spec}, manager, now)
        return {
            field: [{**entry, "subresource": "token"} for entry in entries]
            for field, entries in tracked.items()
        }

    def _bound_objects(self, account: Object, reference: Object | None) -> Object:
        """Return the claims about the object that a token is to be bound to."""
        if reference is None:
            return {}
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        kind, name, namespace = (
            reference.get("kind", ""),
            reference.get("name", ""),
            namespace_of(account),
        )
        if group or kind not in ("Pod", "Secret", "Node"):
            shown = f"{group}/{version}, Kind={kind}"
            raise errors.BadRequest(f"cannot bind token to object of type {shown}")
        if not name:
            raise errors.BadRequest("Name parameter required.")
        obj = self._get(f"{kind.lower()}s", name, namespace="" if kind == "Node" else namespace)
        claims = {kind.lower(): _reference(obj)}
        if kind == "Pod":
            spec = obj.get("spec", {})
            if spec.get("serviceAccountName", "default") != name_of(account):
                raise errors.BadRequest(
                    f"cannot bind token for serviceaccount {quote(name_of(account))} to pod "
                    "running with different serviceaccount name."
                )
            if node := spec.get("nodeName"):
                claims = {"node": {"name": node}, **claims}
                with suppress(errors.NotFound):
                    claims["node"] = _reference(self._get("nodes", node))

        if reference.get("uid") and reference["uid"] != uid_of(obj):
            raise errors.conflict(
                kind,
                name,
                f"the UID in the bound object reference ({reference['uid']}) does not "
                "match the UID in record. The object might have been deleted and then recreated",
            )

        return claims

    # --- accepting

    def authenticate(self, text: str, audiences: Sequence[str] = ()) -> Authenticated:
        """Return whose a token is. Raises TokenError.

        :param audiences: the token must be for one of these; without any, for the API server.
        """
        user, audiences = None, audiences or self.audiences
        for known, its_user in self.known.items():
            if hmac.compare_digest(known.encode(), text.encode(errors="surrogateescape")):
                user = its_user
        if user is not None:
            return Authenticated(user, _for_any(self.audiences, audiences, INVALID_TOKEN))
        token = WebToken.parse(text)
        if token is not None and token.claim("iss") == LEGACY_ISSUER:
            return self._legacy(token, audiences)
        if token is None or token.claim("iss") not in self.issuers:
            raise TokenError(INVALID_TOKEN)
        known_keys = self.public_keys()
        if not known_keys:
            raise TokenError(INVALID_TOKEN)
        keys = [key for key in known_keys if token.key_id in ("", key.id)]
        if not keys:
            raise TokenError("invalid signature, no keys found")
        if not any(map(token.is_signed_by, keys)):
            raise TokenError("go-jose/go-jose: error in cryptographic primitive")
        its_audiences = token.claims.get("aud")
        its_audiences = its_audiences if isinstance(its_audiences, list) else [its_audiences]
        chosen = _for_any(
            its_audiences,
            audiences,
            f"token audiences {_go_quoted(its_audiences)} is invalid for the "
            f"target audiences {_go_quoted(audiences)}",
        )
        return Authenticated(self._bearer(token), chosen)

    def _bearer(self, token: WebToken) -> Object:
        """Return the user of a token with a good signature, if all that it is bound to is still
        there."""
        now = self._server.clock.now()
        self._check_times(token, now)
        private = token.claims.get("kubernetes.io") or {}
        namespace, account = (
            str(private.get("namespace", "")),
            token.reference("serviceaccount") or {},
        )
        name = str(account.get("name", ""))
        current = self._require("serviceaccounts", namespace, name)
        if uid_of(current) != account.get("uid"):
            raise TokenError(
                f"service account UID ({uid_of(current)}) does not match claim "
                f"({account.get('uid')})"
            )

        if _is_gone(current, now):
            raise TokenError(f"service account {namespace}/{name} has been deleted")
        extra: dict[str, list[str]] = {}
        pod, node = token.reference("pod"), token.reference("node")
        for kind in ("secret", "pod", "node"):
            if (reference := token.reference(kind)) and not (kind == "node" and pod):
                self._check_bound(kind, "" if kind == "node" else namespace, reference, now)
        if pod:
            extra |= {f"{EXTRA}pod-name": [pod["name"]], f"{EXTRA}pod-uid": [pod["uid"]]}
        if token.claim("jti"):
            extra[f"{EXTRA}credential-id"] = [f"JTI={token.claim('jti')}"]
        if node:
            extra |= {
                f"{EXTRA}node-{field}": [node[field]]
                for field in ("name", "uid")
                if node.get(field)
            }

        return _account_user(namespace, name, str(account["uid"]), extra)

    def _check_times(self, token: WebToken, now: datetime) -> None:
        moment = now.timestamp()
        if (start := token.time("nbf")) is not None and moment + LEEWAY < start:
            raise TokenError("service account token is not valid yet")
        if (end := token.time("exp")) is not None and moment - LEEWAY > end:
            raise TokenError("service account token has expired")
        if (issued := token.time("iat")) is not None and moment + LEEWAY < issued:
            raise TokenError("service account token is issued in the future")

    def _check_bound(
        self, kind: str, namespace: str, reference: Mapping[str, Any], now: datetime
    ) -> None:
        try:
            obj = self._get(f"{kind}s", str(reference.get("name", "")), namespace=namespace)
        except errors.NotFound:
            raise TokenError("service account token has been invalidated") from None
        if uid_of(obj) != reference.get("uid"):
            raise TokenError(
                f"{kind} UID ({uid_of(obj)}) does not match service account {kind} ref claim "
                f"({reference.get('uid')})"
            )
        if _is_gone(obj, now):
            raise TokenError("service account token has been invalidated")

    def _require(self, resource: str, namespace: str, name: str) -> Object:
        try:
            return self._get(resource, name, namespace=namespace)
        except errors.NotFound as error:
            raise TokenError(error.message) from None

    def _legacy(self, token: WebToken, audiences: Sequence[str]) -> Authenticated:
        """Return whose a token from a Secret is: the Secret must have it, and it must be the one
        made for it."""
        namespace, secret_name, name, uid = (
            token.claim(f"{CLAIM}{claim}")
            for claim in ("namespace", "secret.name", "service-account.name", "service-account.uid")
        )
        for value, claim in (
            (token.claim("sub"), "sub"),
            (namespace, "namespace"),
            (secret_name, "secretName"),
            (name, "serviceAccountName"),
            (uid, "serviceAccountUID"),
        ):
            if not value:
                raise TokenError(f"{claim} claim is missing")

        if split_account(token.claim("sub")) != (namespace, name):
            raise TokenError("sub claim is invalid")
        try:
            secret = self._get("secrets", secret_name, namespace=namespace)
        except errors.NotFound:
            raise TokenError("Token has been invalidated") from None

        if secret["metadata"].get("deletionTimestamp"):
            raise TokenError("Token has been invalidated")
        try:
            stored = base64.b64decode((secret.get("data") or {}).get("token", ""), validate=True)
        except binascii.Error:
            stored = b""

        if not hmac.compare_digest(stored, token.text.encode()):
            raise TokenError("Token does not match server's copy")
        account = self._require("serviceaccounts", namespace, name)
        if account["metadata"].get("deletionTimestamp"):
            raise TokenError(f"ServiceAccount {namespace}/{name} has been deleted")
        if uid_of(account) != uid:
            raise TokenError(f"ServiceAccount UID ({uid_of(account)}) does not match claim ({uid})")
        if not hmac.compare_digest(legacy_token(secret, account).encode(), token.text.encode()):
            raise TokenError("go-jose/go-jose: error in cryptographic primitive")
        if (secret["metadata"].get("labels") or {}).get(INVALID_SINCE):
            raise TokenError(
                f"the token in secret {namespace}/{secret_name} for service account "
                f"{namespace}/{name} "
                "has been marked invalid. Use tokens from the TokenRequest API or manually created "
                f"secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to "
                "temporarily allow use of this token"
            )

        chosen = _for_any(
            self.audiences,
            audiences,
            f"token audiences {_go_quoted(self.audiences)} is invalid for the target "
            f"audiences {_go_quoted(audiences)}",
        )
        return Authenticated(_account_user(namespace, name, uid), chosen)


def _invalid(field: str, value: Any, detail: str, name: str = "") -> errors.Invalid:
    return errors.invalid(
        TOKEN_REQUEST.qualified_kind, name, [errors.invalid_value(field, value, detail)]
    )


def _reference(obj: Object) -> Object:
    return {"name": name_of(obj), "uid": uid_of(obj)}


def _drawn_id(token: PodToken, issued: int) -> str:
    """Return the id of a pod's token, a UUID: its request and its time alone decide it."""
    digest = hashlib.blake2b(token._replace(issued=issued).to_bytes(), digest_size=16).digest()
    return str(UUID(bytes=digest, version=4))


def _unix(moment: datetime) -> int:
    return int((moment - EPOCH).total_seconds())


def _for_any(its_audiences: Sequence[Any], audiences: Sequence[str], problem: str) -> list[str]:
    """Return the audiences of a token that are wanted. Raises TokenError where there is none."""
    chosen = [audience for audience in its_audiences if audience in audiences]
    if not chosen:
        raise TokenError(problem)
    return chosen


def _go_quoted(values: Sequence[Any]) -> str:
    return f"[{' '.join(quote(str(value)) for value in values)}]"


def _is_gone(obj: Object, now: datetime) -> bool:
    deleted = obj["metadata"].get("deletionTimestamp")
    return bool(deleted) and parse_time(deleted) < later(now, -LEEWAY)


def _account_user(
    namespace: str, name: str, uid: str, extra: Mapping[str, list[str]] | None = None
) -> Object:
    return new_user(
        f"{ACCOUNT_PREFIX}{namespace}:{name}",
        [*account_groups(namespace), ALL_AUTHENTICATED],
        uid,
        extra,
    )


# --- tokens in Secrets ----------------------------------------------------------------------------


def legacy_token(secret: Object, account: Object) -> str:
    """Return the token that belongs into a Secret.

    Its signature is a function of the claims and of the Secret's uid, so that it repeats where uids
    do. Nobody but this server can check it.
    """
    namespace = namespace_of(secret)
    claims = {
        "iss": LEGACY_ISSUER,
        f"{CLAIM}namespace": namespace,
        f"{CLAIM}secret.name": name_of(secret),
        f"{CLAIM}service-account.name": name_of(account),
        f"{CLAIM}service-account.uid": uid_of(account),
        "sub": f"{ACCOUNT_PREFIX}{namespace}:{name_of(account)}",
    }
    header = {"alg": "RS256", "kid": url_safe(hashlib.sha256(root_ca().encode()).digest())}
    signed = f"{json_part(header)}.{json_part(claims)}"
    seed = f"{uid_of(secret)}/{signed}".encode()
    return f"{signed}.{url_safe(hashlib.shake_256(seed).digest(LEGACY_SIGNATURE_BYTES))}"
