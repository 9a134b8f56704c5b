/** Completion at the cursor: drawn by the editor itself, as ghost text. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Session } from './all.test';

const DELAY = { delay_ms: 200 };
export const rules = [
  { mode: 'fim', when: { regex: 'pri$', path: '*ghost-*' }, insert: 'nt(value)', ...DELAY },
  { mode: 'fim', when: { regex: 'for $', path: '*ghost-*' }, insert: 'x in xs:\n    print(x)', ...DELAY },
];
const TEXT = 'value = 1\n\n';
export const files = Object.fromEntries(
  ['accepted', 'typed', 'lines', 'dismissed', 'left'].map((name) => [`ghost-${name}.py`, TEXT]),
);

export function ghostText(now: Session): void {
  const typed = async (name: string, text = 'pri', shown = 'nt(value)') => {
    await now.screen.openFile(name, 2);
    await now.screen.type(text);
    await now.screen.until(() => now.screen.ghost(), shown);
  };

  test('ghost text is taken with Tab, and undone in one step', async () => {
    await typed('ghost-accepted.py');
    await now.screen.keys('Tab');
    await now.screen.expectText('ghost-accepted.py', 'value = 1\nprint(value)\n');
    assert.equal(await now.screen.cursor(), '2:13');
    await now.screen.keys('Control+z');
    await now.screen.expectText('ghost-accepted.py', 'value = 1\npri\n');
  });

  test('ghost text shrinks while it is typed, and the model is not asked again', async () => {
    await typed('ghost-typed.py');
    const asked = now.server.asked('ghost-typed.py', 'fim');
    await now.screen.type('nt(');
    await now.screen.until(() => now.screen.ghost(), 'value)');
    assert.equal(now.server.asked('ghost-typed.py', 'fim'), asked);
    await now.screen.keys('Tab');
    await now.screen.expectText('ghost-typed.py', 'value = 1\nprint(value)\n');
  });

  test('several lines are drawn as several lines', async () => {
    await typed('ghost-lines.py', 'for ', 'x in xs:\n    print(x)');
    await now.screen.keys('Tab');
    await now.screen.expectText('ghost-lines.py', 'value = 1\nfor x in xs:\n    print(x)\n');
  });

  test('Esc takes it away', async () => {
    await typed('ghost-dismissed.py');
    await now.screen.keys('Escape');
    await now.screen.until(() => now.screen.ghost(), '');
    await now.screen.expectText('ghost-dismissed.py', 'value = 1\npri\n');
  });

  test('it goes when the cursor goes elsewhere', async () => {
    await typed('ghost-left.py');
    await now.screen.keys('ArrowUp');
    await now.screen.until(() => now.screen.ghost(), '');
  });
}
