/** Text edits as plain values: their order, and how they move when the text around them changes. */

export interface Position {
  line: number;
  character: number; // UTF-16 units
}

export interface Range {
  start: Position;
  end: Position;
}

export interface Edit {
  range: Range;
  text: string;
}

export interface Suggestion {
  id: string;
  edits: Edit[]; // in document order, apart from each other
}

export function compare(a: Position, b: Position): number {
  return a.line - b.line || a.character - b.character;
}

/** Lines as the editor counts them. */
export function linesOf(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}

/** Where the text that `edit` puts in ends. */
export function endOfNewText(edit: Edit): Position {
  const lines = linesOf(edit.text);
  const last = lines[lines.length - 1] ?? '';
  const { line, character } = edit.range.start;
  return lines.length === 1
    ? { line, character: character + last.length }
    : { line: line + lines.length - 1, character: last.length };
}

/** Where `position` is after `change`, which lies wholly before it. */
export function shift(position: Position, change: Edit): Position {
  const { end } = change.range;
  const newEnd = endOfNewText(change);
  const line = position.line + newEnd.line - end.line;
  return position.line === end.line
    ? { line, character: position.character + newEnd.character - end.character }
    : { line, character: position.character };
}

/**
 * The suggestion after `changes` of the text, or undefined when one of them touches an edit.
 * The changes all refer to the text of before, as in an editor's change event.
 */
export function rebase(suggestion: Suggestion, changes: Edit[]): Suggestion | undefined {
  const backwards = [...changes].sort((a, b) => compare(b.range.start, a.range.start));
  let edits = suggestion.edits;
  for (const change of backwards) {
    const moved: Edit[] = [];
    for (const edit of edits) {
      if (compare(change.range.end, edit.range.start) < 0) {
        const range = { start: shift(edit.range.start, change), end: shift(edit.range.end, change) };
        moved.push({ range, text: edit.text });
      } else if (compare(change.range.start, edit.range.end) > 0) {
        moved.push(edit);
      } else {
        return undefined;
      }
    }
    edits = moved;
  }
  return { id: suggestion.id, edits };
}

/** Where the end of `edits[index]` is once all are applied. */
export function endAfterAll(edits: Edit[], index: number): Position | undefined {
  const target = edits[index];
  if (!target) return undefined;
  let at = endOfNewText(target);
  for (const before of edits.slice(0, index).reverse()) at = shift(at, before);
  return at;
}

/** All edits as one, with what stands between them; `text` gives what stands between two places. There is at least one. */
export function merged(edits: Edit[], text: (start: Position, end: Position) => string): Edit {
  return edits.reduce((all, next) => ({
    range: { start: all.range.start, end: next.range.end },
    text: all.text + text(all.range.end, next.range.start) + next.text,
  }));
}
