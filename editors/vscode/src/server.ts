/** The server as a process: finding it, starting it, and the settings that it gets. */

import { existsSync } from 'node:fs';
import * as vscode from 'vscode';
import { LanguageClient, RevealOutputChannelOn, Trace } from 'vscode-languageclient/node';
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
  paused = false; // snoozed: the server is told to predict nothing
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
    if (!found) return false;
    this.log.info(`server: ${[found.command, ...found.args].join(' ')} (${found.from})`);
    const client = new LanguageClient(
      SECTION,
      'Redraft',
      { command: found.command, args: found.args },
      {
        documentSelector: SCHEMES.map((scheme) => ({ scheme })),
        initializationOptions: this.settings(),
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        middleware: {
          workspace: { configuration: (params) => params.items.map(() => this.settings()) },
          provideInlineCompletionItems: async (document, position, context, token, next) => {
            this.completing++;
            try {
              return await next(document, position, context, token);
            } finally {
              this.completing--;
            }
          },
        },
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
    try {
      await client.start();
      await client.setTrace(Trace.Off);
    } catch (error) {
      this.log.error(`the server did not start: ${String(error)}`);
      void vscode.window.showErrorMessage('Redraft: the server did not start; the log says why.');
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
    const settings = Object.fromEntries(this.names.map((name) => [name, all.get(name)]));
    return this.paused ? { ...settings, enable: false } : settings;
  }

  private async find(): Promise<Found | undefined> {
    return findServer({
      setting: vscode.workspace.getConfiguration(SECTION).get<string[]>('serverCommand', []),
      python: vscode.workspace.isTrusted ? await activePython(this.log) : undefined,
      searchPath: process.env['PATH'] ?? '',
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
