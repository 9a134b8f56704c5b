/** Where a next edit is, seen from the cursor, and what is drawn for it on each line. */

import { type Edit, type Position, type Range, linesOf } from './edits';

/** What one line shows: old text struck through, new text after it, and new lines beside it. */
export interface LineMark {
  range: Range; // on one line; empty where nothing is removed
  added: string; // one line; empty where nothing is added
  block?: Block;
}

/** New lines that have no old line: they come after the line of their mark, or before it. */
export interface Block {
  lines: string[];
  below: boolean;
}

export interface VisibleLines {
  start: number;
  end: number; // inclusive
}

export type LineAt = (line: number) => string;

/** Lines between the cursor and the edit; 0 on one of its own lines. */
export function distance(edit: Edit, cursorLine: number): number {
  const { start, end } = edit.range;
  if (cursorLine < start.line) return start.line - cursorLine;
  return Math.max(0, cursorLine - end.line);
}

/** Index of the edit that is nearest to the cursor; the first of equals. */
export function nearest(edits: Edit[], cursorLine: number): number {
  let best = 0;
  edits.forEach((edit, index) => {
    const chosen = edits[best];
    if (chosen && distance(edit, cursorLine) < distance(chosen, cursorLine)) best = index;
  });
  return best;
}

export function onScreen(edit: Edit, visible: VisibleLines[]): boolean {
  const { line } = edit.range.start;
  return visible.some(({ start, end }) => start <= line && line <= end);
}

/** The hint beside the cursor for an edit that is out of sight. */
export function hint(edit: Edit, cursorLine: number): string {
  const { line } = edit.range.start;
  return `${line < cursorLine ? '↑' : '↓'} next edit: line ${line + 1}, Tab to go there`;
}

/** One mark for each line that changes. New lines that are more than the old ones are a block. */
export function lineMarks(edit: Edit, lineAt: LineAt): LineMark[] {
  const { start, end } = edit.range;
  const added = linesOf(edit.text);
  const wholeLines = end.character === 0 && start.character === 0 && added.at(-1) === '';
  if (wholeLines) added.pop();
  if (wholeLines && start.line === end.line) {
    return added.length ? [{ range: mark(start.line, 0, 0), added: '', block: { lines: added, below: false } }] : [];
  }
  const lastLine = wholeLines ? end.line - 1 : end.line;
  const marks: LineMark[] = [];
  for (let line = start.line; line <= lastLine; line++) {
    const from = line === start.line ? start.character : 0;
    const to = line === end.line ? end.character : lineAt(line).length;
    marks.push(...trimmed({ range: mark(line, from, to), added: added.shift() ?? '' }, lineAt));
  }
  if (added.length) {
    const tail = wholeLines ? '' : lineAt(lastLine).slice(end.character);
    const lines = [...added.slice(0, -1), `${added.at(-1) ?? ''}${tail}`];
    const at = lineAt(lastLine).length;
    marks.push({ range: mark(lastLine, at, at), added: '', block: { lines, below: true } });
  }
  return marks;
}

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/;

const PADDING = 1; // columns, left and right of a block's text

/** The column right of `lines`, where a block covers none of them; not beyond `most`. Beside nothing its text stands as code. */
export function columnBeside(lines: string[], tabSize: number, most = 80): number {
  const widthAfter = (width: number, character: string) =>
    character === '\t' ? width + tabSize - (width % tabSize) : width + (WIDE.test(character) ? 2 : 1);
  const widths = lines.map((line) => Array.from(line).reduce(widthAfter, 0));
  const widest = Math.max(0, ...widths);
  return widest ? Math.min(widest, most) + 2 : -PADDING;
}

const MOST_LINES = 40;

/**
 * Declarations that draw `lines` as a box, to follow `text-decoration:`. The editor gives a decoration one
 * line of text only; as a style it may have several.
 */
export function blockStyle(lines: string[], column: number, below: boolean, tabSize: number): string {
  const shown = lines.length > MOST_LINES ? [...lines.slice(0, MOST_LINES), '…'] : lines;
  const declarations = {
    content: `"${escaped(shown.join('\n'))}"`,
    position: 'absolute',
    top: below ? '100%' : '0',
    left: `${column}ch`,
    'z-index': '1',
    'white-space': 'pre',
    'tab-size': `${tabSize}`,
    'pointer-events': 'none',
    padding: `0 ${PADDING}ch`,
    'background-image': 'linear-gradient(var(--vscode-diffEditor-insertedTextBackground) 0 0)',
    'background-color': 'var(--vscode-editor-background)',
  };
  return ['none', ...Object.entries(declarations).map(([name, value]) => `${name}: ${value}`)].join('; ');
}

/** As the inside of a CSS string: nothing in it can end the string. */
function escaped(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9 ]/gu, (character) => `\\${(character.codePointAt(0) ?? 0).toString(16)} `);
}

/** Only what differs: no mark for an unchanged line, none over a common head or tail. */
function trimmed({ range, added }: LineMark, lineAt: LineAt): LineMark[] {
  const { line } = range.start;
  const old = lineAt(line).slice(range.start.character, range.end.character);
  if (old === added) return [];
  const most = Math.min(old.length, added.length);
  let head = 0;
  while (head < most && old[head] === added[head]) head++;
  let tail = 0;
  while (tail < most - head && old.at(-1 - tail) === added.at(-1 - tail)) tail++;
  const from = range.start.character + head;
  const to = range.end.character - tail;
  return [{ range: mark(line, from, to), added: added.slice(head, added.length - tail) }];
}

function mark(line: number, from: number, to: number): Range {
  return { start: { line, character: from }, end: { line, character: to } };
}

/** Whether Tab would indent here: nothing but white space stands before the cursor. */
export function inIndentation(cursor: Position, lineAt: LineAt): boolean {
  return lineAt(cursor.line).slice(0, cursor.character).trim() === '';
}

/** Whether Tab may act on a next edit. `jumped`: Tab itself has brought the cursor here. */
export function tabActs(cursor: Position, lineAt: LineAt, jumped: boolean): boolean {
  return jumped || !inIndentation(cursor, lineAt);
}
