/** The status bar item and its menu. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Session } from './all.test';

export const rules = [{ mode: 'fim', when: { regex: 'pri$', path: '*status-*' }, insert: 'nt()' }];
export const files = { 'status-silence.py': '\n', 'status-language.py': '\n', 'status-snooze.py': '\n', 'status-cursors.py': '\n\n' };

export function statusBar(now: Session): void {
  const askFor = async (entry: string) => {
    const entries = await now.screen.menu();
    assert.ok(entries.some((one) => one.startsWith(entry)), `${entry} in ${entries.join(' | ')}`);
    await now.screen.choose(entry);
  };
  const silent = async () => {
    await now.screen.page.waitForTimeout(700);
    assert.equal(await now.screen.ghost(), '');
  };
  const speaks = () => now.screen.until(() => now.screen.ghost(), 'nt()');
  const icon = (name: string) => now.screen.until(() => now.screen.status(), (status) => status.startsWith(name));

  test('the menu names the model and the last reason for silence', async () => {
    await now.screen.openFile('status-silence.py');
    await now.screen.type('zzz');
    await now.screen.until(() => Promise.resolve(now.server.asked('status-silence.py', 'fim')), (n) => n > 0);
    await now.screen.page.waitForTimeout(700);
    const entries = await now.screen.menu();
    assert.ok(entries.includes('Model: scripted'), entries.join(' | '));
    assert.ok(entries.includes('Last reason for silence: no-prediction'), entries.join(' | '));
    await now.screen.choose('Last reason for silence');
    await now.screen.until(() => now.screen.notification(), (text) => text.includes('last silence: no-prediction'));
  });

  test('a language is switched off and on', async () => {
    await now.screen.openFile('status-language.py');
    await askFor('Disable for python');
    await icon('circle-slash');
    assert.deepEqual(now.server.settings()['redraft.disabledLanguages'], ['python']);
    await now.screen.type('pri');
    await silent();
    await askFor('Enable for python');
    await icon('edit-sparkle');
    await now.screen.type(' pri');
    await speaks();
  });

  test('snoozing makes it silent until it is woken', async () => {
    await now.screen.openFile('status-snooze.py');
    await askFor('Snooze for 10 minutes');
    await icon('bell-slash');
    await now.screen.type('pri');
    await silent();
    assert.equal(now.server.asked('status-snooze.py', 'fim') + now.server.asked('status-snooze.py', 'next_edit'), 0);
    await askFor('Wake');
    await icon('edit-sparkle');
    await now.screen.type(' pri');
    await speaks();
  });

  test('several cursors get no suggestion, and the menu says why', async () => {
    await now.screen.openFile('status-cursors.py');
    await now.screen.keys('Shift+Alt+ArrowDown');
    await now.screen.type('pri');
    await silent();
    const entries = await now.screen.menu();
    assert.ok(entries.includes('Last reason for silence: multiple-selections'), entries.join(' | '));
    await now.screen.keys('Escape');
  });

  test('the log tells which server runs', async () => {
    await askFor('Show the log');
    const output = now.screen.page.locator('.output-view-content, .part.panel .view-lines');
    await now.screen.until(async () => (await output.allInnerTexts()).join(''), (text) => /server:.*lsp/s.test(text));
    await now.screen.keys('Control+j');
  });

  test('nothing went wrong in the extension, although another one owns names of the server', () => {
    assert.match(now.server.log('remoteexthost.log'), /_doActivateExtension rival\.rival/);
    assert.doesNotMatch(now.server.log('Redraft.log'), /\[(error|warning)\]/);
    assert.doesNotMatch(now.server.log('remoteexthost.log'), /\[error\].*redraft/i);
  });
}
