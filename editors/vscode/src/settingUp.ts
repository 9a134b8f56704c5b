/** Brings the server where there is none: from a copy of the repository, or a command that the user names. */

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { activePython } from './server';

const WINDOWS = process.platform === 'win32';

export async function offerToSetUp(): Promise<void> {
  const chosen = await vscode.window.showWarningMessage('Redraft: the command `redraft` was not found.', 'Set Up');
  if (chosen) await vscode.commands.executeCommand('redraft.install');
}

/** Install from a copy of the repository, or name a command. */
export async function setUp(log: vscode.LogOutputChannel): Promise<void> {
  const copy = 'Choose a copy of the Redraft repository';
  const command = 'Choose the redraft command';
  const details = {
    [copy]: 'What `make demo` has set up there is used; else it is installed, which takes a minute.',
    [command]: 'For instance .venv/bin/redraft',
  };
  const items = Object.entries(details).map(([label, detail]) => ({ label, detail }));
  const chosen = (await vscode.window.showQuickPick(items, { placeHolder: 'Redraft: set up the server' }))?.label;
  if (!chosen) return;
  const folders = chosen === copy;
  const options = { canSelectFolders: folders, canSelectFiles: !folders, title: chosen, openLabel: 'Choose' };
  const [picked] = (await vscode.window.showOpenDialog(options)) ?? [];
  if (picked) await (folders ? useCopy(picked.fsPath, log) : useCommand(picked.fsPath));
}

/** Take the command that a copy of the repository has, install it into the active environment, or into a new one. */
async function useCopy(folder: string, log: vscode.LogOutputChannel): Promise<void> {
  const own = path.join(folder, '.venv', WINDOWS ? 'Scripts' : 'bin');
  const command = path.join(own, WINDOWS ? 'redraft.exe' : 'redraft');
  if (existsSync(command)) return useCommand(command);
  if (!existsSync(path.join(folder, 'lsp_server', 'cli.py'))) {
    void vscode.window.showErrorMessage(`Redraft: ${folder} is no copy of the Redraft repository.`);
    return;
  }
  const active = await activePython(log);
  const python = active ?? path.join(own, 'python');
  if (!active && !(await run(WINDOWS ? 'python' : 'python3', ['-m', 'venv', '.venv'], folder, log))) return;
  if (!(await run(python, ['-m', 'pip', 'install', '-c', 'constraints.txt', '-e', '.'], folder, log))) return;
  if (active) await vscode.commands.executeCommand('redraft.restart');
  else await useCommand(command);
}

async function useCommand(command: string): Promise<void> {
  const target = vscode.ConfigurationTarget.Global;
  await vscode.workspace.getConfiguration('redraft').update('serverCommand', [command, 'lsp'], target);
}

/** Run a command, what it says going to the log; whether it went well. */
async function run(command: string, args: string[], cwd: string, log: vscode.LogOutputChannel): Promise<boolean> {
  log.info(`${cwd}: ${[command, ...args].join(' ')}`);
  const options = { location: vscode.ProgressLocation.Notification, title: 'Redraft: setting up the server', cancellable: true };
  const code = await vscode.window.withProgress(options, (_, cancelled) => new Promise<number | string>((resolve) => {
    const child = spawn(command, args, { cwd });
    const say = (text: Buffer) => {
      log.info(text.toString().trimEnd());
    };
    child.stdout.on('data', say);
    child.stderr.on('data', say);
    child.on('error', (error) => {
      resolve(String(error));
    });
    child.on('close', (status, signal) => {
      resolve(status ?? String(signal));
    });
    cancelled.onCancellationRequested(() => child.kill());
  }));
  if (code === 0) return true;
  log.error(`${command} ended with ${code}`);
  void vscode.window.showErrorMessage('Redraft: the server was not set up; the log says why.');
  return false;
}
