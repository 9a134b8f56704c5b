/** Puts the parts together: log, server, next edit, menu and commands. */

import * as vscode from 'vscode';
import { Menu } from './menu';
import { NextEdit } from './nextEdit';
import { inlineEdits } from './proposed';
import { Server, activePython } from './server';

const RESTARTING = ['redraft.serverCommand', 'redraft.model', 'redraft.device', 'redraft.threads'];

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel('Redraft', { log: true });
  const server = new Server(context, log);
  const nextEdit = new NextEdit(server, log);
  const menu = new Menu(server);
  const chooseView = (): void => {
    const wanted = vscode.workspace.getConfiguration('redraft').get<boolean>('inlineEdits', false);
    nextEdit.showBy(wanted ? inlineEdits(() => { nextEdit.reject(); }, log) : undefined);
  };
  const start = async (): Promise<void> => {
    nextEdit.clear();
    if (!(await server.restart())) await offerToSetUp();
  };
  const commands: Record<string, (argument: unknown) => unknown> = {
    'redraft.menu': () => menu.open(),
    'redraft.toggle': () => menu.toggle(),
    'redraft.toggleLanguage': () => menu.toggleLanguage(),
    'redraft.snooze': () => {
      nextEdit.clear();
      menu.snooze();
    },
    // What the editor runs after ghost text was taken.
    'redraft.accept': (id) => {
      server.tell('redraft.accept', String(id));
    },
    'redraft.restart': start,
    'redraft.showLog': () => {
      log.show();
    },
    'redraft.showStatus': () => menu.showStatus(),
    'redraft.install': () => setUp(log),
    'redraft.nextEdit.ask': () => nextEdit.ask(true),
    'redraft.nextEdit.accept': () => nextEdit.accept(),
    'redraft.nextEdit.tab': () => nextEdit.tab(),
    'redraft.nextEdit.dismiss': () => {
      nextEdit.reject();
    },
  };
  context.subscriptions.push(
    log,
    server,
    nextEdit,
    menu,
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run)),
    vscode.workspace.onDidGrantWorkspaceTrust(start),
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      if (editor) server.focus(editor.document);
    }),
    vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
      if (textEditor === vscode.window.activeTextEditor) server.place(textEditor);
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration('redraft.inlineEdits')) chooseView();
      if (RESTARTING.some((name) => event.affectsConfiguration(name))) await start();
      else if (event.affectsConfiguration('redraft')) {
        nextEdit.clear();
        await server.sendSettings();
      }
    }),
  );
  chooseView();
  await start();
}

async function offerToSetUp(): Promise<void> {
  const chosen = await vscode.window.showWarningMessage('Redraft: the command `redraft` was not found.', 'Set Up');
  if (chosen) await vscode.commands.executeCommand('redraft.install');
}

/** Install from a copy of the repository into the active Python environment, or name a command. */
async function setUp(log: vscode.LogOutputChannel): Promise<void> {
  const install = 'Install from a folder with Redraft';
  const name = 'Choose the redraft command';
  const chosen = await vscode.window.showQuickPick([install, name], { placeHolder: 'Redraft: set up the server' });
  if (!chosen) return;
  const folders = chosen === install;
  const [picked] = (await vscode.window.showOpenDialog({ canSelectFolders: folders, canSelectFiles: !folders })) ?? [];
  if (!picked) return;
  if (!folders) {
    const command = [picked.fsPath, 'lsp'];
    const target = vscode.ConfigurationTarget.Global;
    await vscode.workspace.getConfiguration('redraft').update('serverCommand', command, target);
    return;
  }
  const python = (await activePython(log)) ?? (process.platform === 'win32' ? 'python' : 'python3');
  const shellArgs = ['-m', 'pip', 'install', '-c', 'constraints.txt', '-e', '.'];
  const task = new vscode.Task(
    { type: 'process' },
    vscode.TaskScope.Global,
    'Install Redraft',
    'Redraft',
    new vscode.ProcessExecution(python, shellArgs, { cwd: picked.fsPath }),
  );
  const execution = await vscode.tasks.executeTask(task);
  const ended = vscode.tasks.onDidEndTaskProcess(async (event) => {
    if (event.execution !== execution) return;
    ended.dispose();
    if (event.exitCode === 0) await vscode.commands.executeCommand('redraft.restart');
  });
}
