/** Brings the server where there is none: from a copy of the repository, or a command that the user names. */

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
  const active = await activePython(log);
  const python = active ?? path.join(own, 'python');
  if (!active && !(await run(WINDOWS ? 'python' : 'python3', ['-m', 'venv', '.venv'], folder))) return;
  if (!(await run(python, ['-m', 'pip', 'install', '-c', 'constraints.txt', '-e', '.'], folder))) return;
  if (active) await vscode.commands.executeCommand('redraft.restart');
  else await useCommand(command);
}

async function useCommand(command: string): Promise<void> {
  const target = vscode.ConfigurationTarget.Global;
  await vscode.workspace.getConfiguration('redraft').update('serverCommand', [command, 'lsp'], target);
}

/** Run a command in a terminal that the user sees; whether it went well. */
async function run(command: string, args: string[], cwd: string): Promise<boolean> {
  const execution = new vscode.ProcessExecution(command, args, { cwd });
  const task = new vscode.Task({ type: 'process' }, vscode.TaskScope.Global, 'Install Redraft', 'Redraft', execution);
  const started = await vscode.tasks.executeTask(task);
  return new Promise((resolve) => {
    const ended = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution !== started) return;
      ended.dispose();
      resolve(event.exitCode === 0);
    });
  });
}
