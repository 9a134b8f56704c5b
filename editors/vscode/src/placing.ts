/** Where a next edit is, seen from the cursor, and what is drawn for it on each line. */

import { type Edit, type Position, type Range, linesOf } from './edits';

/** What one line shows: old text struck through, and new text after it. */
export interface LineMark {
  range: Range; // on one line; empty where nothing is removed
  added: string; // one line; empty where nothing is added
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

/**
 * One mark for each line. A decoration shows one line of text only, so new lines that have no old
 * line beside them stand, marked with an arrow each, after the last one.
 */
export function lineMarks(edit: Edit, lineAt: LineAt): LineMark[] {
  const { start, end } = edit.range;
  const added = linesOf(edit.text);
  let lastLine = end.line;
  if (end.character === 0 && end.line > start.line && added.at(-1) === '') {
    added.pop(); // whole lines for whole lines
    lastLine -= 1;
  }
  const marks: LineMark[] = [];
  for (let line = start.line; line <= lastLine; line++) {
    const from = line === start.line ? start.character : 0;
    const to = line === end.line ? end.character : lineAt(line).length;
    const range = mark(line, from, to);
    const isLast = line === lastLine;
    const mine = isLast ? added.splice(0).join(' ⏎ ') : (added.shift() ?? '');
    marks.push({ range, added: mine });
  }
  return marks.flatMap((one) => trimmed(one, lineAt));
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
