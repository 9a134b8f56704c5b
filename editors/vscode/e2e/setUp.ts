/** A VS Code whose user has installed the extension, and not the server yet. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { CodeServer } from './codeServer';
import { Screen } from './screen';

const EDITS = [{ range: { start: { line: 1, character: 0 }, end: { line: 1, character: 0 } }, new_text: 'later = 2\n' }];

export function setUp(): void {
  let server: CodeServer;
  let screen: Screen;
  before(async () => {
    const rules = [{ mode: 'next_edit', when: { history: '+first' }, edits: EDITS }];
    const settings = { 'files.autoSave': 'off' }; // in a browser it is on
    server = new CodeServer({ rules, settings, withoutCommand: true, files: { 'early.py': 'a = 1\n' } });
    await server.start();
    screen = await Screen.open(server, 'error');
  });
  after(async () => {
    await screen.close();
    server.stop();
  });

  test('it says what is missing, and its menu opens while that stands unanswered', async () => {
    await screen.until(() => screen.notification(), (text) => text.includes('the command `redraft` was not found'));
    const entries = await screen.menu();
    assert.ok(entries.includes('Last reason for silence: the command `redraft` was not found'), entries.join(' | '));
    await screen.choose('Set up the server');
    await screen.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Choose a copy of the Redraft' }).waitFor();
    await screen.keys('Escape');
  });

  test('the command of a user is found, and what was typed before it started is answered', async () => {
    await screen.openFile('early.py', 1, 1);
    await screen.type('first = 0; ');
    server.addCommand('.local', 'bin');
    await screen.menu();
    await screen.choose('Restart the server');
    await screen.until(() => screen.status(), (status) => status.startsWith('edit-sparkle'), 60_000);
    const beside = async () => (await screen.drawn()).map((line) => line.beside).join('');
    await screen.until(beside, (text) => text.includes('later = 2'));
  });

  test('a copy of the repository that has the command is used, another folder is refused', async () => {
    const command = server.addCommand('copy', '.venv', 'bin');
    const choose = async (folder: string) => {
      await screen.menu();
      await screen.choose('Set up the server');
      await screen.choose('Choose a copy of the Redraft');
      const dialog = screen.page.locator('.quick-input-widget', { hasText: 'Choose a copy of the Redraft' });
      await dialog.locator('.monaco-list-row', { hasText: 'copy' }).waitFor(); // it has come to the user's home
      await dialog.locator('input').first().fill(folder);
      await dialog.locator('.monaco-list-row', { hasText: 'copy' }).waitFor({ state: 'hidden' });
      await dialog.locator('.quick-input-action .monaco-button').first().click();
    };
    await choose(`${server.workspace}/`);
    await screen.until(() => screen.notification(), (text) => text.includes('is no copy of the Redraft repository'));
    assert.equal(existsSync(server.file('.venv')), false);
    await choose(command.replace('.venv/bin/redraft', ''));
    await screen.until(() => Promise.resolve(server.log('Redraft.log')), (log) => log.includes(`${command} lsp (setting)`));
    await screen.until(() => screen.status(), (status) => status.startsWith('edit-sparkle'), 60_000);
  });
}
