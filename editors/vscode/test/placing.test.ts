import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Edit } from '../src/edits';
import { blockStyle, columnBeside, distance, hint, lineMarks, nearest, onScreen, tabActs } from '../src/placing';

const text = ['def f(a):', '    return a', '', '    b = 1'];
const lineAt = (line: number) => text[line] ?? '';
function edit(line: number, from: number, endLine: number, to: number, added = ''): Edit {
  return { range: { start: { line, character: from }, end: { line: endLine, character: to } }, text: added };
}
function span(line: number, from: number, to: number) {
  return edit(line, from, line, to).range;
}

test('distance counts from the nearer end', () => {
  const one = edit(4, 0, 6, 2);
  assert.deepEqual([1, 5, 9].map((line) => distance(one, line)), [3, 0, 3]);
});
test('the nearest of several edits', () => {
  assert.equal(nearest([edit(1, 0, 1, 1), edit(8, 0, 8, 1), edit(20, 0, 20, 1)], 9), 1);
});
test('folded lines are not on screen', () => {
  const visible = [{ start: 0, end: 3 }, { start: 9, end: 20 }];
  assert.equal(onScreen(edit(3, 0, 3, 0), visible), true);
  assert.equal(onScreen(edit(5, 0, 5, 0), visible), false);
});
test('the hint points the way', () => {
  assert.match(hint(edit(4, 0, 4, 0), 9), /^↑ next edit: line 5,/);
});
test('a replacement marks what differs', () => {
  assert.deepEqual(lineMarks(edit(0, 0, 0, 9, 'def f(a, b):'), lineAt), [{ range: span(0, 7, 7), added: ', b' }]);
});
test('each line has a mark of its own, unchanged lines none', () => {
  const marks = lineMarks(edit(0, 0, 2, 0, 'def f(c):\n    return a\n'), lineAt);
  assert.deepEqual(marks, [{ range: span(0, 6, 7), added: 'c' }]);
  const both = lineMarks(edit(0, 6, 1, 12, 'c):\n    return c'), lineAt);
  assert.deepEqual(both.map((m) => [m.range.start.line, m.added]), [[0, 'c'], [1, 'c']]);
});
test('a deletion of lines strikes each through', () => {
  const marks = lineMarks(edit(0, 0, 2, 0), lineAt);
  assert.deepEqual(marks, [{ range: span(0, 0, 9), added: '' }, { range: span(1, 0, 12), added: '' }]);
});
test('new lines without an old one are a block after the last', () => {
  assert.deepEqual(lineMarks(edit(1, 12, 1, 12, ' + 1\n    x'), lineAt), [
    { range: span(1, 12, 12), added: ' + 1' },
    { range: span(1, 12, 12), added: '', block: { lines: ['    x'], below: true } },
  ]);
  assert.deepEqual(lineMarks(edit(0, 0, 1, 0, 'def f(a):\n    # x\n'), lineAt), [
    { range: span(0, 9, 9), added: '', block: { lines: ['    # x'], below: true } },
  ]);
});
test('a block ends with what stood after the edit', () => {
  const [, mark] = lineMarks(edit(1, 4, 1, 4, 'if a:\n        '), lineAt);
  assert.deepEqual(mark?.block, { lines: ['        return a'], below: true });
});
test('whole lines put in before a line are a block before it', () => {
  const block = { lines: ['import a', 'import b'], below: false };
  assert.deepEqual(lineMarks(edit(0, 0, 0, 0, 'import a\nimport b\n'), lineAt), [{ range: span(0, 0, 0), added: '', block }]);
});
test('a block stands right of the lines beside it', () => {
  assert.equal(columnBeside(['abc', '\tx', ''], 4), 7);
  assert.equal(columnBeside(['\u4e2d\u6587'], 4), 6);
  assert.equal(columnBeside(['x'.repeat(300)], 4), 82);
  assert.equal(columnBeside(['', ''], 4), -1); // and one of padding
});
test('nothing in a block can end its style', () => {
  const style = blockStyle(['a"; } * {', '\tb'], 7, true, 4);
  const content = 'content: "a\\22 \\3b  \\7d  \\2a  \\7b \\a \\9 b"';
  assert.ok(style.startsWith(`none; ${content}; position: absolute; top: 100%; left: 7ch;`), style);
});
test('Tab indents in the indentation, unless it has jumped there', () => {
  assert.equal(tabActs({ line: 1, character: 4 }, lineAt, false), false);
  assert.equal(tabActs({ line: 2, character: 0 }, lineAt, false), false);
  assert.equal(tabActs({ line: 1, character: 5 }, lineAt, false), true);
  assert.equal(tabActs({ line: 1, character: 4 }, lineAt, true), true);
});
