import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Edit, endAfterAll, rebase } from '../src/edits';

function edit(line: number, from: number, to: number, text: string, endLine = line): Edit {
  return { range: { start: { line, character: from }, end: { line: endLine, character: to } }, text };
}
const shown = { id: 'a', edits: [edit(5, 4, 7, 'new')] };

test('a line put in above moves the edit down', () => {
  assert.deepEqual(rebase(shown, [edit(2, 0, 0, 'x\r\n')])?.edits, [edit(6, 4, 7, 'new')]);
});
test('text typed before it on its line moves it right', () => {
  assert.deepEqual(rebase(shown, [edit(5, 1, 2, 'abc')])?.edits, [edit(5, 6, 9, 'new')]);
});
test('lines joined above it on its own line move it up and right', () => {
  assert.deepEqual(rebase(shown, [edit(4, 10, 0, '', 5)])?.edits, [edit(4, 14, 17, 'new')]);
});
test('a change behind it leaves it', () => {
  assert.deepEqual(rebase(shown, [edit(5, 8, 9, '\n\n')])?.edits, shown.edits);
});
test('a change that touches it ends the suggestion', () => {
  assert.equal(rebase(shown, [edit(5, 7, 7, 'x')]), undefined);
  assert.equal(rebase(shown, [edit(0, 0, 0, '', 9)]), undefined);
});
test('many changes at once all count', () => {
  assert.deepEqual(rebase(shown, [edit(1, 0, 0, 'a\n'), edit(3, 0, 0, '', 4)])?.edits, shown.edits);
});
test('the cursor goes to the end of the edit, wherever the ones before have moved it', () => {
  assert.deepEqual(endAfterAll([edit(1, 0, 0, 'a\nb\n'), edit(4, 2, 3, 'xyz')], 1), { line: 6, character: 5 });
});
