"""Which services the user has allowed, and the keys that go to them: a file of his own, outside of any workspace.

Responsible for addresses (`ServiceAddress`), for the file and for finding a key. Settings may come from a workspace
that somebody else wrote; they can name a service, but only this file lets anything be sent to it, and a key goes
nowhere but to the service that it was entered for. Knows nothing of connections.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from platformdirs import user_config_path

from model.feedback import FOLDER_VARIABLE

FILE = "services.json"
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+")
INCEPTION = "https://api.inceptionlabs.ai"
INCEPTION_KEY = "INCEPTION_API_KEY"


class ConsentError(Exception):
    """A service cannot be used; the message says what the user can do, and holds no key."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """`origin` is scheme, host and port; `base` is what the paths of endpoints are added to."""

    origin: str
    base: str
    private: bool

    @classmethod
    def of(cls, url: str) -> ServiceAddress:
        """Read an address; one without a path gets `/v1`. Raises `ConsentError` that says what is wrong with it."""
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ConsentError(f"{url!r} is not an address: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise ConsentError(
                f"{url!r} is not an address like https://host or http://127.0.0.1:8000"
            )
        if parts.username is not None or parts.password is not None:
            raise ConsentError("the address of a service must not hold a name or a password")
        if not _HOST.fullmatch(host):
            raise ConsentError(f"{host!r} is not the name of a host")
        if parts.query or parts.fragment:
            raise ConsentError(f"{url!r} must end with its path")
        name = f"[{host}]" if ":" in host else host
        default = {"http": 80, "https": 443}[parts.scheme]
        origin = f"{parts.scheme}://{name}" + ("" if port in (None, default) else f":{port}")
        path = parts.path.rstrip("/") or "/v1"
        return cls(origin, origin + path, parts.scheme == "https" or is_loopback(host))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, judged without asking anybody."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Service:
    """One allowed service: where its key is, if it has one."""

    origin: str
    key_variable: str = ""
    stored_key: str = field(default="", repr=False)

    def key(self, environment: Mapping[str, str] = os.environ) -> str:
        """The key, empty where none is needed. Raises `ConsentError` when it is not there or is none."""
        key = (
            environment.get(self.key_variable, "").strip() if self.key_variable else self.stored_key
        )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ConsentError(f"the key for {self.origin} holds characters that no key has")
        if self.key_variable and not key:
            raise ConsentError(
                f"the key for {self.origin} is expected in the environment variable "
                f"{self.key_variable}, which is not set"
            )
        return key


def config_folder() -> Path:
    """Where the user's own choices are kept: `$REDRAFT_HOME`, else the platform's folder for configuration."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else user_config_path("redraft", appauthor=False)


class Consents:
    """The allowed services, and the folders where the user has been told of them. Every change is written at once."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or config_folder() / FILE
        self._services: dict[str, dict[str, Any]] = {}
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            self._services = {str(k): dict(v) for k, v in raw["services"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConsentError(f"{self.path} cannot be read: {type(error).__name__}") from None

    def __iter__(self) -> Iterator[Service]:
        return (self._service(origin) for origin in sorted(self._services))

    def service(self, address: ServiceAddress) -> Service:
        """The allowed service at an address. Raises `ConsentError` that says how to allow it."""
        if address.origin not in self._services:
            raise ConsentError(
                f"the settings ask for the remote backend at {address.origin}, which you have not "
                f"allowed; nothing was sent. To allow it: redraft remote allow {address.origin}"
            )
        return self._service(address.origin)

    def allow(self, address: ServiceAddress, key_variable: str = "", key: str = "") -> Service:
        """Let requests be sent there from now on."""
        kept = {"keyEnv": key_variable, "key": key, "folders": []}
        self._services[address.origin] = {name: value for name, value in kept.items() if value}
        self._write()
        return self._service(address.origin)

    def forget(self, address: ServiceAddress) -> bool:
        """Take the permission and the key back; whether there was one."""
        known = self._services.pop(address.origin, None) is not None
        if known:
            self._write()
        return known

    def first_time(self, origin: str, folders: Sequence[Path]) -> bool:
        """Whether a service is used for the first time in one of these folders; it is not the next time."""
        told = self._services[origin].setdefault("folders", [])
        new = [str(folder) for folder in folders if str(folder) not in told]
        if new:
            told.extend(new)
            self._write()
        return bool(new) or not folders

    def _service(self, origin: str) -> Service:
        kept = self._services[origin]
        return Service(origin, str(kept.get("keyEnv", "")), str(kept.get("key", "")))

    def _write(self) -> None:
        """Replace the file, readable for its owner only."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"services": self._services}, file, indent=1)
        os.replace(temporary, self.path)
