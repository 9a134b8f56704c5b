/** A VS Code in a browser's reach: code-server with the packed extension, on a fresh profile. Knows no page. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';

const EXTENSION = process.cwd(); // npm runs scripts in the package's folder
const ROOT = path.resolve(EXTENSION, '../..');
const VSIX = path.join(EXTENSION, 'redraft.vsix');
const PYTHON = process.env['REDRAFT_PYTHON'] ?? path.join(ROOT, '.venv/bin/python');
const QUIET = {
  'security.workspace.trust.enabled': false,
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'chat.disableAIFeatures': true,
  'telemetry.telemetryLevel': 'off',
  'extensions.ignoreRecommendations': true,
  'editor.accessibilitySupport': 'off',
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'editor.autoClosingBrackets': 'never',
  'editor.minimap.enabled': false,
};

export interface Options {
  rules?: object[]; // of the scripted predictor; without them the embedded model answers
  settings?: Record<string, unknown>;
  withoutCommand?: boolean; // nobody has told the extension where the server is
  files: Record<string, string>;
}

/** Where code-server and its node are, or what is missing. */
export function findCodeServer(): { node: string; entry: string } | string {
  const folder = process.env['CODE_SERVER'] ?? path.join(ROOT, '.code-server');
  const entry = path.join(folder, 'cs/node_modules/code-server/out/node/entry.js');
  const node = path.join(folder, 'node');
  if (!existsSync(entry) || !existsSync(node)) return 'no code-server: sh editors/vscode/e2e/install.sh';
  return { node, entry };
}

/** Debian's Chromium, or what is missing. */
export function findChromium(): string | undefined {
  return ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((file) => existsSync(file));
}

export class CodeServer {
  readonly workspace: string;
  url = '';
  private readonly home = mkdtempSync(path.join(tmpdir(), 'redraft-vscode-'));
  private readonly data = path.join(this.home, 'data');
  private readonly extensions = path.join(this.home, 'ext');
  private readonly trace = path.join(this.home, 'trace.jsonl');
  private process: ChildProcess | undefined;

  constructor({ rules, settings, withoutCommand, files }: Options) {
    this.workspace = path.join(this.home, 'work');
    mkdirSync(this.workspace);
    for (const [name, text] of Object.entries(files)) writeFileSync(this.file(name), text);
    const script = path.join(this.home, 'script.json');
    this.addRival();
    if (rules) writeFileSync(script, JSON.stringify({ rules, trace: this.trace }));
    const machine = {
      ...(withoutCommand ? {} : { 'redraft.serverCommand': [PYTHON, '-m', 'lsp_server', 'lsp'] }),
      ...(rules ? { 'redraft.model': `scripted:${script}` } : {}),
    };
    this.write('User', { ...QUIET, 'redraft.gitHistory': false, 'redraft.debounceMs': 10, ...settings });
    const snippets = path.join(this.workspace, '.vscode');
    mkdirSync(snippets);
    const two = { two: { prefix: 'two', body: 'f(${1:a}, ${2:b})' } };
    writeFileSync(path.join(snippets, 'tests.code-snippets'), JSON.stringify(two));
    this.write('Machine', machine); // a remote window takes settings of a machine from here only
  }

  file(name: string): string {
    return path.join(this.workspace, name);
  }

  /** Put the server's command into a folder of the user's home. */
  addCommand(...folders: string[]): string {
    const folder = path.join(this.home, ...folders);
    mkdirSync(folder, { recursive: true });
    const command = path.join(folder, 'redraft');
    writeFileSync(command, `#!/bin/sh\nexec '${PYTHON}' -m lsp_server "$@"\n`);
    chmodSync(command, 0o755);
    return command;
  }

  /** Another extension, which owns command names that our server answers to. Found at the first start. */
  private addRival(): void {
    const folder = path.join(this.extensions, 'rival.rival-1.0.0');
    mkdirSync(folder, { recursive: true });
    const engines = { vscode: '^1.108.0' };
    const manifest = { name: 'rival', publisher: 'rival', version: '1.0.0', engines, main: 'main.js', activationEvents: ['*'] };
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
    const register = (name: string) => `vscode.commands.registerCommand('github.copilot.${name}', () => 'mine');`;
    const names = ['didAcceptCompletionItem', 'didAcceptNextEditSuggestionItem'];
    const main = `const vscode = require('vscode'); exports.activate = () => { ${names.map(register).join(' ')} };`;
    writeFileSync(path.join(folder, 'main.js'), main);
  }

  private write(folder: string, settings: Record<string, unknown>): void {
    mkdirSync(path.join(this.data, folder), { recursive: true });
    writeFileSync(path.join(this.data, folder, 'settings.json'), JSON.stringify(settings));
  }

  settings(): Record<string, unknown> {
    return JSON.parse(readFileSync(path.join(this.data, 'User/settings.json'), 'utf8')) as Record<string, unknown>;
  }

  async start(): Promise<void> {
    const found = findCodeServer();
    if (typeof found === 'string') throw new Error(found);
    const { node, entry } = found;
    const folders = ['--user-data-dir', this.data, '--extensions-dir', this.extensions];
    const env = { ...process.env, HOME: this.home, PYTHONPATH: ROOT, REDRAFT_HOME: path.join(this.home, 'redraft') };
    const install = spawnSync(node, [entry, ...folders, '--install-extension', VSIX], { env, encoding: 'utf8' });
    if (install.status !== 0) throw new Error(`the VSIX was not installed: ${install.stdout}${install.stderr}`);
    const options = ['--bind-addr', '127.0.0.1:0', '--auth', 'none', '--disable-telemetry', '--disable-update-check'];
    const child = spawn(node, [entry, ...options, ...folders, this.workspace], { env, detached: true });
    this.process = child;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        this.stop();
        process.exit(1);
      });
    }
    this.url = await new Promise((resolve, reject) => {
      let said = '';
      const listen = (chunk: Buffer) => {
        said += chunk.toString();
        const address = /listening on (http:\S+)/.exec(said)?.[1];
        if (address) resolve(address.replace(/\/$/, ''));
      };
      child.stdout.on('data', listen);
      child.stderr.on('data', listen);
      child.on('exit', () => {
        reject(new Error(`code-server ended: ${said}`));
      });
    });
  }

  /** How often the scripted predictor was asked about a file. */
  asked(name: string, mode: string): number {
    const lines = existsSync(this.trace) ? readFileSync(this.trace, 'utf8').trim().split('\n') : [];
    const calls = lines.map((line) => JSON.parse(line) as { event: string; mode: string; path: string });
    return calls.filter((call) => call.event === 'start' && call.mode === mode && call.path.endsWith(name)).length;
  }

  /** What the logs whose names contain `name` say, of all extension hosts. */
  log(name: string): string {
    const folder = path.join(this.data, 'logs');
    const all = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
    const files = all.filter((file) => path.basename(file) === name);
    return files.map((file) => readFileSync(path.join(folder, file), 'utf8')).join('');
  }

  stop(): void {
    if (this.process?.pid) process.kill(-this.process.pid, 'SIGTERM'); // its whole group, the language server too
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}
