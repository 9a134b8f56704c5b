/** Draws a next edit into an editor: what is struck through, what stands beside it, and where to go. */

import * as vscode from 'vscode';
import type { Edit, Range } from './edits';
import { type Block, type LineAt, type LineMark, blockStyle, columnBeside, lineMarks } from './placing';

export class Drawing implements vscode.Disposable {
  private readonly old = vscode.window.createTextEditorDecorationType({
    textDecoration: 'line-through',
    backgroundColor: new vscode.ThemeColor('diffEditor.removedTextBackground'),
  });
  private readonly added = vscode.window.createTextEditorDecorationType({});
  private readonly before = borderType('1px 0 0 0');
  private readonly after = borderType('0 0 1px 0');
  private readonly hint = vscode.window.createTextEditorDecorationType({});

  /** `hint` stands at the end of the cursor's line; empty where the edit can be seen. */
  draw(editor: vscode.TextEditor, edits: Edit[], hint: string): void {
    const lineAt: LineAt = (line) => lineText(editor.document, line);
    const marks = edits.flatMap((edit) => lineMarks(edit, lineAt));
    const ranges = marks.map(({ range }) => toRange(range));
    editor.setDecorations(this.old, ranges.filter((range) => !range.isEmpty));
    const inline = marks.filter(({ added }) => added).map(({ range, added }) => ghost(toRange(range).end, added));
    const blocks = marks.flatMap((mark) => (mark.block ? [beside(editor, mark, mark.block)] : []));
    editor.setDecorations(this.added, [...inline, ...blocks]);
    const borders = (below: boolean) =>
      marks.filter(({ block }) => block?.below === below).map(({ range }) => toRange(range));
    editor.setDecorations(this.before, borders(false));
    editor.setDecorations(this.after, borders(true));
    const end = editor.document.lineAt(editor.selection.active.line).range.end;
    editor.setDecorations(this.hint, hint ? [ghost(end, `  ${hint}`)] : []);
  }

  dispose(): void {
    for (const type of [this.old, this.added, this.before, this.after, this.hint]) type.dispose();
  }
}

export function lineText(document: vscode.TextDocument, line: number): string {
  return line < document.lineCount ? document.lineAt(line).text : '';
}

export function toRange({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

/** Where a block of new lines comes in. */
function borderType(borderWidth: string): vscode.TextEditorDecorationType {
  const borderColor = new vscode.ThemeColor('editorGhostText.foreground');
  return vscode.window.createTextEditorDecorationType({ isWholeLine: true, borderStyle: 'dashed', borderWidth, borderColor });
}

function ghost(at: vscode.Position, text: string): vscode.DecorationOptions {
  const contentText = text.replaceAll('\t', '    ').replaceAll(' ', '\u00a0');
  const color = new vscode.ThemeColor('editorGhostText.foreground');
  return { range: new vscode.Range(at, at), renderOptions: { after: { contentText, color } } };
}

/** New lines, one below the other, right of the lines that they stand beside. */
function beside(editor: vscode.TextEditor, { range }: LineMark, { lines, below }: Block): vscode.DecorationOptions {
  const tabSize = Number(editor.options.tabSize) || 4;
  const first = range.start.line + (below ? 1 : 0);
  const covered = lines.map((_, index) => lineText(editor.document, first + index));
  const textDecoration = blockStyle(lines, columnBeside(covered, tabSize), below, tabSize);
  const after = { contentText: ' ', textDecoration, color: new vscode.ThemeColor('editor.foreground') };
  return { range: toRange(range), renderOptions: { after } };
}
