/** The status bar item and its menu. */

import * as vscode from 'vscode';
import { describe, statusText, toggled, withoutServer } from './describing';
import type { Server } from './server';

const SNOOZE_MINUTES = 10;

export class Menu implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('redraft', vscode.StatusBarAlignment.Right);
  private snoozedUntil: number | undefined;
  private waking: NodeJS.Timeout | undefined;
  private readonly parts: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.item.name = 'Redraft';
    this.item.command = 'redraft.menu';
    const update = () => {
      this.update();
    };
    this.parts = [this.item, server.onDidChange(update), vscode.window.onDidChangeActiveTextEditor(update)];
    this.update();
    this.item.show();
  }

  async open(): Promise<void> {
    const report = await this.server.report();
    const language = vscode.window.activeTextEditor?.document.languageId;
    const entry = (label: string, command: string, description = '') => ({ label, command, description });
    const entries = [
      entry(enabled() ? 'Disable' : 'Enable', 'redraft.toggle'),
      ...(language ? [entry(`${languageEnabled(language) ? 'Disable' : 'Enable'} for ${language}`, 'redraft.toggleLanguage')] : []),
      entry(this.snoozedUntil === undefined ? `Snooze for ${SNOOZE_MINUTES} minutes` : 'Wake', 'redraft.snooze'),
      entry('Model', 'workbench.action.openSettings', report?.model ?? 'not running'),
      entry('Last reason for silence', 'redraft.showStatus', report ? (report.lastReason ?? 'none') : withoutServer(this.server)),
      entry('Set up the server', 'redraft.install'),
      entry('Restart the server', 'redraft.restart'),
      entry('Show the log', 'redraft.showLog'),
    ];
    const chosen = await vscode.window.showQuickPick(entries, { placeHolder: 'Redraft' });
    // A click has moved the focus to the status bar, where the next keys would be lost.
    await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
    if (!chosen) return;
    const rest = chosen.label === 'Model' ? ['redraft.model'] : [];
    await vscode.commands.executeCommand(chosen.command, ...rest);
  }

  async toggle(): Promise<void> {
    await settings().update('enable', !enabled(), vscode.ConfigurationTarget.Global);
  }

  async toggleLanguage(): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    if (!language) return;
    const list = toggled(disabledLanguages(), language);
    await settings().update('disabledLanguages', list, vscode.ConfigurationTarget.Global);
  }

  snooze(): void {
    clearTimeout(this.waking);
    const snoozing = this.snoozedUntil === undefined;
    const time = SNOOZE_MINUTES * 60_000;
    this.snoozedUntil = snoozing ? Date.now() + time : undefined;
    const wake = () => {
      this.snooze();
    };
    if (snoozing) this.waking = setTimeout(wake, time);
    this.server.snooze(snoozing);
  }

  async showStatus(): Promise<void> {
    const report = await this.server.report();
    void vscode.window.showInformationMessage(report ? describe(report) : `Redraft: ${withoutServer(this.server)}.`);
  }

  dispose(): void {
    clearTimeout(this.waking);
    for (const part of this.parts) part.dispose();
  }

  private update(): void {
    const language = vscode.window.activeTextEditor?.document.languageId;
    const { running, starting, missing, status } = this.server;
    this.item.text = statusText({
      running,
      starting,
      missing,
      status,
      enabled: enabled(),
      languageEnabled: language === undefined || languageEnabled(language),
      snoozedUntil: this.snoozedUntil,
    });
    this.item.tooltip = running ? (status?.message ?? '') : withoutServer(this.server);
  }
}

function settings(): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration('redraft');
}

function enabled(): boolean {
  return settings().get('enable', true);
}

function disabledLanguages(): string[] {
  return settings().get<string[]>('disabledLanguages', []);
}

function languageEnabled(language: string): boolean {
  return !disabledLanguages().includes(language);
}
