import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Position, merged } from '../src/edits';
import { InlineEdits, type Item, type Provider } from '../src/inlineEdits';

/** A document of one line or more, as the editor gives its text. */
interface Fake {
  text: string;
}

const at = (line: number, character: number): Position => ({ line, character });
function between({ text }: Fake, start: Position, end: Position): string {
  const lines = text.split('\n');
  const offset = ({ line, character }: Position) =>
    line >= lines.length ? text.length : lines.slice(0, line).join('\n').length + (line ? 1 : 0) + character;
  return text.slice(offset(start), offset(end));
}

const SUGGESTION = {
  id: 'one',
  edits: [
    { range: { start: at(1, 6), end: at(1, 11) }, text: 'total' },
    { range: { start: at(2, 3), end: at(2, 8) }, text: 'total' },
  ],
};
const TEXT = 'total = 0\nprint(count)\nif count:\n    pass\n';

function opened() {
  const said: string[] = [];
  let provider: Provider<Fake> | undefined;
  const view = new InlineEdits<Fake>({
    register: (given) => {
      provider = given;
      return { refresh: () => said.push('refresh'), dispose: () => said.push('dispose') };
    },
    text: (document, { start, end }) => between(document, start, end),
    rejected: () => said.push('rejected'),
  });
  assert.ok(provider);
  return { view, said, provider };
}

test('several edits become one, with the text between them', () => {
  const document = { text: TEXT };
  assert.deepEqual(merged(SUGGESTION.edits, (start, end) => between(document, start, end)), {
    range: { start: at(1, 6), end: at(2, 8) },
    text: 'total)\nif total',
  });
});
test('the editor is offered what is shown, for its own document only', () => {
  const { view, said, provider } = opened();
  const document = { text: TEXT };
  assert.deepEqual(provider.items(document), []);
  const shown = { document, suggestion: SUGGESTION };
  view.show(shown);
  view.show({ ...shown }); // the cursor has moved, say
  assert.deepEqual(provider.items(document).map(({ id, edit }) => [id, edit.text]), [['one', 'total)\nif total']]);
  assert.deepEqual(provider.items({ text: TEXT }), []);
  view.show(undefined);
  assert.deepEqual(provider.items(document), []);
  assert.deepEqual(said, ['refresh']);
});
test('the text after the edit is known, however its lines end', () => {
  const { view } = opened();
  const document = { text: TEXT };
  view.show({ document, suggestion: SUGGESTION });
  assert.equal(view.isApplied(document), false);
  document.text = 'total = 0\nprint(total)\nif count:\n    pass\n';
  assert.equal(view.isApplied(document), false);
  document.text = 'total = 0\r\nprint(total)\r\nif total:\r\n    pass\r\n';
  assert.equal(view.isApplied(document), true);
  assert.equal(view.isApplied({ text: document.text }), false);
});
test('only what the user rejects is rejected, and only while it is shown', () => {
  const { view, said, provider } = opened();
  const document = { text: TEXT };
  view.show({ document, suggestion: SUGGESTION });
  const [item] = provider.items(document) as [Item];
  for (const reason of [0, 2]) provider.ended(item, reason); // accepted, ignored
  assert.deepEqual(said, ['refresh']);
  provider.ended(item, 1);
  assert.deepEqual(said, ['refresh', 'rejected']);
  view.show(undefined);
  provider.ended(item, 1);
  assert.deepEqual(said, ['refresh', 'rejected']);
});
test('an editor that withholds the API is heard at once', () => {
  const register = () => {
    throw new Error('CANNOT use API proposal');
  };
  assert.throws(() => new InlineEdits<Fake>({ register, text: () => '', rejected: () => undefined }), /CANNOT/);
});
