"""An editor for tests: a pytest-lsp client and what a user does with it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pytest_lsp import LanguageClient
from pytest_lsp.client import register_lsp_features
from pytest_lsp.protocol import LanguageClientProtocol

from lsp_server.protocol import make_converter
from lsp_server.status import NOTIFICATION

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "lsp_server", "lsp"]
UTF16 = ("utf-16",)
CONVERTER = make_converter()


class ClientProtocol(LanguageClientProtocol):
    """Sends the parameters of inline completion as they are, with whatever a test adds to them."""

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        if method == lsp.TEXT_DOCUMENT_INLINE_COMPLETION:
            return None
        return super().get_message_type(method)


def make_client(configuration: Mapping[str, Any] | None = None) -> LanguageClient:
    client = LanguageClient(
        protocol_cls=ClientProtocol,
        converter_factory=lambda: CONVERTER,
        configuration={"": dict(configuration or {})},
    )
    register_lsp_features(client)
    client.statuses = []  # type: ignore[attr-defined]
    client.registrations = []  # type: ignore[attr-defined]

    @client.feature(NOTIFICATION)
    def did_change_status(params: Any) -> None:
        client.statuses.append(params)  # type: ignore[attr-defined]

    @client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def register(params: lsp.RegistrationParams) -> None:
        client.registrations += params.registrations  # type: ignore[attr-defined]

    return client


def capabilities(
    encodings: Sequence[str] = UTF16,
    *,
    progress: bool = False,
    configuration: bool = False,
    watch: bool = False,
) -> lsp.ClientCapabilities:
    return lsp.ClientCapabilities(
        general=lsp.GeneralClientCapabilities(position_encodings=list(encodings)),
        text_document=lsp.TextDocumentClientCapabilities(
            inline_completion=lsp.InlineCompletionClientCapabilities()
        ),
        window=lsp.WindowClientCapabilities(work_done_progress=progress),
        workspace=lsp.WorkspaceClientCapabilities(
            configuration=configuration,
            did_change_watched_files=lsp.DidChangeWatchedFilesClientCapabilities(
                dynamic_registration=watch
            ),
        ),
    )


class Editor:
    """One client with one server; documents are named by file name below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trace = folder.parent / f"{folder.name}-trace.jsonl"
        self.versions: dict[str, int] = {}
        self.client: LanguageClient
        self.started = False
        self.result: lsp.InitializeResult | None = None

    async def start(
        self,
        rules: Sequence[Mapping[str, Any]] = (),
        *,
        options: dict[str, Any] | list[Any] | None = None,
        caps: lsp.ClientCapabilities | None = None,
        script: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
        ready: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Editor:
        """Start a server whose predictor answers by `rules`; wait until the model is loaded."""
        path = self.folder.parent / f"{self.folder.name}-script.json"
        path.write_text(
            json.dumps({"trace": str(self.trace), **(script or {}), "rules": list(rules)})
        )
        self.client = make_client(configuration)
        self.started = True
        env = {**os.environ, "REDRAFT_SCRIPT": str(path), "PYTHONPATH": str(ROOT)}
        await self.client.start_io(*COMMAND, env={**env, **(environment or {})})
        base = {"debounceMs": 10, "gitHistory": False, "watchFiles": "off"}
        folder = lsp.WorkspaceFolder(uri=self.folder.as_uri(), name=self.folder.name)
        self.result = await self.client.initialize_session(
            lsp.InitializeParams(
                capabilities=caps or capabilities(),
                workspace_folders=[folder],
                initialization_options=options
                if isinstance(options, list)
                else base | (options or {}),
            )
        )
        if ready:
            await self.wait_for_state("ready")
        return self

    async def stop(self) -> None:
        server = self.client._server
        if server is not None and server.returncode is None:
            await asyncio.wait_for(self.client.shutdown_session(), 10)
        await self.client.stop()

    @property
    def process(self) -> asyncio.subprocess.Process:
        server = self.client._server
        assert server is not None
        return server

    def uri(self, name: str) -> str:
        return name if ":" in name else (self.folder / name).as_uri()

    def open(self, name: str, text: str, language: str = "python") -> str:
        uri = self.uri(name)
        self.versions[uri] = 1
        self.client.text_document_did_open(
            lsp.DidOpenTextDocumentParams(
                text_document=lsp.TextDocumentItem(
                    uri=uri, language_id=language, version=1, text=text
                )
            )
        )
        return uri

    def change(self, name: str, *changes: tuple[int, int, int, int, str] | str) -> int:
        """Ranges and new texts, or whole new texts; the new version."""
        uri = self.uri(name)
        self.versions[uri] += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                text_document=lsp.VersionedTextDocumentIdentifier(
                    uri=uri, version=self.versions[uri]
                ),
                content_changes=[_content_change(change) for change in changes],
            )
        )
        return self.versions[uri]

    def type(self, name: str, line: int, character: int, text: str) -> int:
        return self.change(name, (line, character, line, character, text))

    def inline_params(
        self, name: str, line: int, character: int, kind: int = 2, **context: Any
    ) -> dict[str, Any]:
        return {
            "textDocument": {"uri": self.uri(name)},
            "position": {"line": line, "character": character},
            "context": {"triggerKind": kind, **context},
        }

    async def request(self, method: str, params: Any = None) -> Any:
        return await asyncio.wait_for(
            self.client.protocol.send_request_async(method, params), timeout=20
        )

    async def inline(
        self, name: str, line: int, character: int, kind: int = 2, **context: Any
    ) -> lsp.InlineCompletionItem | None:
        """The only item, or None."""
        params = self.inline_params(name, line, character, kind, **context)
        result = await self.request("textDocument/inlineCompletion", params)
        if not result.items:
            return None
        assert len(result.items) == 1
        return result.items[0]

    async def next_edit(
        self,
        name: str,
        line: int = 0,
        character: int = 0,
        *,
        version: int | None = None,
        method: str = "redraft/nextEdit",
        **more: Any,
    ) -> dict[str, Any]:
        uri = self.uri(name)
        return await self.request(
            method,
            {
                "textDocument": {
                    "uri": uri,
                    "version": self.versions[uri] if version is None else version,
                },
                "position": {"line": line, "character": character},
                **more,
            },
        )

    async def command(self, name: str, *arguments: Any) -> Any:
        return await self.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams(command=name, arguments=list(arguments))
        )

    async def status(self) -> dict[str, Any]:
        return await self.request("redraft/status")

    async def reason(self) -> str | None:
        return (await self.status())["lastReason"]

    async def wait_for_state(self, state: str) -> dict[str, Any]:
        return await self.wait_until(lambda status: status["state"] == state)

    async def wait_until(self, holds: Any, timeout: float = 15) -> dict[str, Any]:
        """Ask for the status until `holds` of it is true."""
        async with asyncio.timeout(timeout):
            while not holds(status := await self.status()):
                await asyncio.sleep(0.02)
        return status

    def calls(self, event: str = "start") -> list[dict[str, Any]]:
        """What the scripted predictor noted: start, end, cancelled or expired."""
        if not self.trace.exists():
            return []
        notes = [json.loads(line) for line in self.trace.read_text().splitlines()]
        return [note for note in notes if note["event"] == event]

    async def wait_for_calls(self, count: int, event: str = "start") -> None:
        async with asyncio.timeout(10):
            while len(self.calls(event)) < count:
                await asyncio.sleep(0.01)


def suggestion_id(item: lsp.InlineCompletionItem | dict[str, Any]) -> str:
    command = item["command"] if isinstance(item, dict) else item.command
    arguments = command["arguments"] if isinstance(command, dict) else command.arguments
    return arguments[0]


def _content_change(change: tuple[int, int, int, int, str] | str) -> Any:
    if isinstance(change, str):
        return lsp.TextDocumentContentChangeWholeDocument(text=change)
    line, character, end_line, end_character, text = change
    return lsp.TextDocumentContentChangePartial(
        range=lsp.Range(
            start=lsp.Position(line=line, character=character),
            end=lsp.Position(line=end_line, character=end_character),
        ),
        text=text,
    )
