/** The next edit: drawn by decorations, jumped to and applied with Tab, rejected with Esc. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Session } from './all.test';

const when = { history: '+total', path: '*next-*' };
const at = (line: number, character: number) => ({ line, character });
const insert = (line: number, character: number, new_text: string) => ({
  edits: [{ range: { start: at(line, character), end: at(line, character) }, new_text }],
});
export const rules = [
  { mode: 'next_edit', when: { ...when, path: '*next-before.py' }, ...insert(1, 0, 'import a\nimport "b"\n') },
  { mode: 'next_edit', when: { ...when, path: '*next-after.py' }, ...insert(1, 12, '  # 1\n    x = 2\n    y') },
  { mode: 'next_edit', when, replace: { old: 'count', new: 'total', all: true }, delay_ms: 200 },
];
const NEAR = 'count = 0\nprint(count)\nif count:\n    pass\n';
const FAR = `count = 0\n${'pass\n'.repeat(60)}print(count)\n`;
export const files = {
  'next-applied.py': NEAR,
  'next-rejected.py': NEAR,
  'next-indent.py': NEAR,
  'next-moved.py': NEAR,
  'next-far.py': FAR,
  'next-units.py': '\u{1f600} = count = 0\r\nprint("\u{1f600}\u{1f600}", count)\r\n',
  'next-menu.py': 'count = 0\nprint(count)\nco\n',
  'next-snippet.py': NEAR,
  'next-switched.py': NEAR,
  'next-before.py': NEAR,
  'next-after.py': NEAR,
  'next-nothing.py': 'if True:\n\n',
};

export function nextEdit(now: Session): void {
  const drawn = async () => (await now.screen.drawn()).map(({ struck, beside }) => `${struck}>${beside}`);
  const marks = async () => (await drawn()).filter((mark) => mark !== '>');

  /** The first word of the file becomes `total`. */
  const rename = async (name: string) => {
    await now.screen.openFile(name);
    await now.screen.keys('Control+Shift+ArrowRight');
    await now.screen.type('total');
  };

  test('old text is struck through, new text stands beside it, Tab applies all, and one undo takes all back', async () => {
    await rename('next-applied.py');
    await now.screen.until(async () => (await drawn()).slice(0, 3), ['>', 'count>total', 'count>total']);
    await now.screen.keys('Tab');
    await now.screen.until(marks, []);
    await now.screen.expectText('next-applied.py', 'total = 0\nprint(total)\nif total:\n    pass\n');
    await now.screen.keys('Control+z');
    await now.screen.expectText('next-applied.py', 'total = 0\nprint(count)\nif count:\n    pass\n');
  });

  test('an edit out of sight has a hint beside the cursor; Tab jumps there, Tab applies it', async () => {
    await rename('next-far.py');
    await now.screen.until(async () => (await drawn())[0], '>  ↓ next edit: line 62, Tab to go there');
    await now.screen.keys('Tab');
    await now.screen.until(() => now.screen.cursor(), '62:7');
    await now.screen.until(marks, ['count>total']);
    await now.screen.keys('Tab');
    await now.screen.expectText('next-far.py', `total = 0\n${'pass\n'.repeat(60)}print(total)\n`);
  });

  test('new lines before a line stand beside it, each on its own', async () => {
    await rename('next-before.py');
    await now.screen.until(async () => (await drawn())[1], '>import a\nimport "b"');
    const box = await now.screen.page.evaluate(() => {
      const lines = [...document.querySelectorAll('.editor-instance .lines-content > .view-lines > .view-line')];
      const all = lines.flatMap((line) => [...line.querySelectorAll('span span')]);
      const styles = all.map((span) => getComputedStyle(span, '::after')).filter(({ content }) => content.startsWith('"'));
      return styles.map(({ position, height, left }) => ({ position, height, left }));
    });
    const height = await now.screen.page.evaluate(() =>
      getComputedStyle(document.querySelector('.editor-instance .view-lines .view-line') ?? document.body).height);
    assert.equal(box.length, 1);
    assert.equal(box[0]?.position, 'absolute');
    assert.equal(Number.parseFloat(box[0].height), 2 * Number.parseFloat(height));
    await now.screen.keys('Tab');
    await now.screen.expectText('next-before.py', 'total = 0\nimport a\nimport "b"\nprint(count)\nif count:\n    pass\n');
  });

  test('new lines after a line stand below its end', async () => {
    await rename('next-after.py');
    const shown = await now.screen.until(async () => (await drawn())[1] ?? '', (mark) => mark !== '>');
    assert.equal(shown.replace('  # 1', ''), '>    x = 2\n    y'); // in whichever order
    await now.screen.keys('Tab');
    await now.screen.expectText('next-after.py', 'total = 0\nprint(count)  # 1\n    x = 2\n    y\nif count:\n    pass\n');
  });

  test('Esc rejects it, and it does not come back', async () => {
    await rename('next-rejected.py');
    await now.screen.until(marks, ['count>total', 'count>total']);
    await now.screen.keys('Escape');
    await now.screen.until(marks, []);
    await now.screen.expectText('next-rejected.py', 'total = 0\nprint(count)\nif count:\n    pass\n');
    const asked = now.server.asked('next-rejected.py', 'next_edit');
    await now.screen.keys('End');
    await now.screen.type('  # sum');
    await now.screen.until(() => Promise.resolve(now.server.asked('next-rejected.py', 'next_edit')), (n) => n > asked);
    await now.screen.page.waitForTimeout(600);
    assert.deepEqual(await marks(), []);
  });

  test('at a column where Tab indents it indents', async () => {
    await rename('next-indent.py');
    await now.screen.until(marks, ['count>total', 'count>total']);
    await now.screen.keys('ArrowDown', 'Home', 'Tab');
    await now.screen.expectText('next-indent.py', 'total = 0\n    print(count)\nif count:\n    pass\n');
    assert.deepEqual(await marks(), ['count>total', 'count>total']);
  });

  test('it moves along when a line is put in above it', async () => {
    await rename('next-moved.py');
    await now.screen.until(marks, ['count>total', 'count>total']);
    await now.screen.keys('End', 'Enter');
    await now.screen.until(async () => (await drawn()).slice(0, 4), ['>', '>', 'count>total', 'count>total']);
  });

  test('after characters of two UTF-16 units, in a file with CRLF, it stands and goes where it belongs', async () => {
    await now.screen.openFile('next-units.py');
    await now.screen.keys('ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'Control+Shift+ArrowRight');
    await now.screen.type('total');
    await now.screen.until(marks, ['count>total']);
    await now.screen.keys('Tab');
    await now.screen.expectText('next-units.py', '\u{1f600} = total = 0\r\nprint("\u{1f600}\u{1f600}", total)\r\n');
  });

  test('while the suggestion list is open Tab is for the list', async () => {
    await rename('next-menu.py');
    await now.screen.until(marks, ['count>total']);
    await now.screen.keys('ArrowDown', 'ArrowDown', 'End', 'Control+Space');
    await now.screen.page.locator('.suggest-widget .monaco-list-row').first().waitFor();
    await now.screen.keys('Tab');
    await now.screen.expectText('next-menu.py', 'total = 0\nprint(count)\ncount\n');
  });

  test('in a snippet Tab goes to the next field', async () => {
    await rename('next-snippet.py');
    await now.screen.until(marks, ['count>total', 'count>total']);
    await now.screen.keys('Control+End');
    await now.screen.command('Insert Snippet');
    await now.screen.page.locator('.quick-input-list .monaco-list-row', { hasText: 'two' }).first().click();
    await now.screen.type('1');
    await now.screen.keys('Tab');
    await now.screen.type('2');
    await now.screen.expectText('next-snippet.py', 'total = 0\nprint(count)\nif count:\n    pass\nf(1, 2)');
    assert.deepEqual(await marks(), ['count>total', 'count>total']);
    await now.screen.keys('Escape');
  });

  test('it goes when another file is looked at, and is not there on return', async () => {
    await rename('next-switched.py');
    await now.screen.until(marks, ['count>total', 'count>total']);
    await now.screen.openFile('next-nothing.py');
    await now.screen.openFile('next-switched.py');
    assert.deepEqual(await marks(), []);
  });

  test('Tab indents where nothing is shown', async () => {
    await now.screen.openFile('next-nothing.py', 2);
    await now.screen.keys('Tab');
    await now.screen.type('x');
    await now.screen.keys('Tab');
    await now.screen.type('y');
    await now.screen.expectText('next-nothing.py', 'if True:\n    x   y\n');
  });
}
