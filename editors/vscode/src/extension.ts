/** Puts the parts together: log, server, next edit, menu and commands. */

import * as vscode from 'vscode';
import { Menu } from './menu';
import { NextEdit } from './nextEdit';
import { inlineEdits } from './proposed';
import { Server } from './server';
import { offerToSetUp, setUp } from './settingUp';

const RESTARTING = ['redraft.serverCommand', 'redraft.model', 'redraft.device', 'redraft.threads'];

export function activate(context: vscode.ExtensionContext): void {
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
    if (!(await server.restart())) void offerToSetUp();
    else if (vscode.window.activeTextEditor?.document.isDirty) await nextEdit.ask(false);
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
  void start(); // while it is awaited, the editor runs none of the commands
}
