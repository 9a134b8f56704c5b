/** The server as a process: finding it, starting it, and the settings that it gets. */

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { type LanguageClient, RevealOutputChannelOn, Trace } from 'vscode-languageclient/node';
import { Client, middleware } from './client';
import type { Report, ServerStatus } from './describing';
import { type Found, findServer } from './finding';

interface PythonApi {
  environments?: { getActiveEnvironmentPath(): { path: string } };
}

interface Group {
  title: string;
  properties: Record<string, unknown>;
}

const SECTION = 'redraft';

/** Documents that the server hears of. Others, such as the log itself, are none of its business. */
export const SCHEMES = ['file', 'untitled'];

export class Server implements vscode.Disposable {
  client: LanguageClient | undefined;
  status: ServerStatus | undefined;
  snoozed = false; // nothing is asked unless the user asks
  starting = false;
  missing = false; // there is no command to run
  completing = 0; // completions that the editor waits for; any other question would withdraw them
  private readonly names: string[];
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;

  constructor(
    context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {
    const manifest = context.extension.packageJSON as { contributes: { configuration: Group[] } };
    const group = manifest.contributes.configuration.find(({ title }) => title === 'Server');
    this.names = Object.keys(group?.properties ?? {}).map((name) => name.slice(SECTION.length + 1));
  }

  get running(): boolean {
    return this.client?.isRunning() ?? false;
  }

  /** False when there is no command to run. An error of the command itself is shown and logged. */
  async start(): Promise<boolean> {
    const found = await this.find();
    this.missing = !found;
    if (!found) {
      this.log.warn('the command `redraft` was not found');
      this.changed.fire();
      return false;
    }
    this.log.info(`server: ${[found.command, ...found.args].join(' ')} (${found.from})`);
    const client = new Client(
      SECTION,
      'Redraft',
      { command: found.command, args: found.args },
      {
        documentSelector: SCHEMES.map((scheme) => ({ scheme })),
        initializationOptions: this.settings(),
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        middleware: middleware({
          settings: () => this.settings(),
          snoozed: () => this.snoozed,
          awaits: (change) => {
            this.completing += change;
          },
        }),
      },
    );
    client.onNotification('redraft/didChangeStatus', (status: ServerStatus) => {
      this.status = status;
      this.changed.fire();
    });
    client.onDidChangeState(() => {
      this.changed.fire();
    });
    this.client = client;
    this.starting = true;
    this.changed.fire();
    try {
      await client.start();
      await client.setTrace(Trace.Off);
    } catch (error) {
      this.log.error(`the server did not start: ${String(error)}`);
      void vscode.window.showErrorMessage('Redraft: the server did not start; the log says why.');
    } finally {
      this.starting = false;
      this.changed.fire();
    }
    return true;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.status = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      this.log.warn(`the server did not stop cleanly: ${String(error)}`);
    }
    this.changed.fire();
  }

  async restart(): Promise<boolean> {
    await this.stop();
    return this.start();
  }

  async sendSettings(): Promise<void> {
    if (this.running) {
      const settings = { [SECTION]: this.settings() };
      await this.client?.sendNotification('workspace/didChangeConfiguration', { settings });
    }
    this.changed.fire();
  }

  async report(): Promise<Report | undefined> {
    return this.running ? this.client?.sendRequest<Report>('redraft/status', {}) : undefined;
  }

  snooze(on: boolean): void {
    this.snoozed = on;
    this.changed.fire();
  }

  /** Tell the server which document the user looks at; it ranks related files by that. */
  focus(document: vscode.TextDocument): void {
    if (!this.running || !SCHEMES.includes(document.uri.scheme)) return;
    const uri = this.client?.code2ProtocolConverter.asUri(document.uri);
    void this.client?.sendNotification('textDocument/didFocus', { textDocument: { uri } });
  }

  /** Tell the server where the cursor is, so that it has read the place before a key is typed there. */
  place({ document, selection }: vscode.TextEditor): void {
    if (!this.running || !SCHEMES.includes(document.uri.scheme)) return;
    const uri = this.client?.code2ProtocolConverter.asUri(document.uri);
    const { line, character } = selection.active;
    void this.client?.sendNotification('redraft/didMoveCursor', { textDocument: { uri }, position: { line, character } });
  }

  /** Tell the server what became of a suggestion. */
  tell(command: string, id: string): void {
    if (!this.running) return;
    const params = { command, arguments: [id] };
    this.client?.sendRequest('workspace/executeCommand', params).catch((error: unknown) => {
      this.log.warn(`${command}: ${String(error)}`);
    });
  }

  dispose(): void {
    void this.stop();
    this.changed.dispose();
  }

  private settings(): Record<string, unknown> {
    const all = vscode.workspace.getConfiguration(SECTION);
    return Object.fromEntries(this.names.map((name) => [name, all.get(name)]));
  }

  private async find(): Promise<Found | undefined> {
    return findServer({
      setting: vscode.workspace.getConfiguration(SECTION).get<string[]>('serverCommand', []),
      python: vscode.workspace.isTrusted ? await activePython(this.log) : undefined,
      searchPath: [process.env['PATH'] ?? '', path.join(homedir(), '.local', 'bin')].join(path.delimiter),
      windows: process.platform === 'win32',
      exists: existsSync,
    });
  }
}

/** The interpreter that the Python extension has chosen, where there is one. */
export async function activePython(log: vscode.LogOutputChannel): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>('ms-python.python');
  try {
    return (await extension?.activate())?.environments?.getActiveEnvironmentPath().path;
  } catch (error) {
    log.warn(`the Python extension did not answer: ${String(error)}`);
    return undefined;
  }
}
