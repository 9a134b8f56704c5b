/**
 * Next edits in the editor's own view, by an API that most of its builds withhold. Knows no editor: it is told how to
 * register a provider there, and that throws where the API is withheld.
 */

import { type Edit, type Range, type Suggestion, linesOf, merged } from './edits';

/** The number by which the editor says that the user has rejected an item. */
const REJECTED = 1;
const START = { line: 0, character: 0 };
const END = { line: 2 ** 30, character: 0 };

/** What the editor draws: one replacement, and the suggestion that it stands for. */
export interface Item {
  id: string;
  edit: Edit;
}

export interface Provider<D> {
  items: (document: D) => Item[];
  ended: (item: Item, reason: number) => void;
}

export interface Editor<D> {
  /** `refresh` makes the editor ask for items. */
  register: (provider: Provider<D>) => { refresh: () => void; dispose: () => void };
  text: (document: D, range: Range) => string;
  rejected: () => void;
}

export class InlineEdits<D> {
  private shown: { document: D; suggestion: Suggestion; item: Item; applied: string } | undefined;
  private readonly view: { refresh: () => void; dispose: () => void };

  /** Throws where the editor withholds the API. */
  constructor(private readonly editor: Editor<D>) {
    this.view = editor.register({
      items: (document) => (this.shown?.document === document ? [this.shown.item] : []),
      ended: (item, reason) => {
        if (reason === REJECTED && item.id === this.shown?.item.id) editor.rejected();
      },
    });
  }

  /** Show a suggestion, or none. What is shown already stays as it is. */
  show(now: { document: D; suggestion: Suggestion } | undefined): void {
    if (now?.suggestion === this.shown?.suggestion) return;
    this.shown = now && { ...now, ...this.prepared(now.document, now.suggestion) };
    if (now) this.view.refresh(); // what is over goes by itself
  }

  /** Whether the text is what it is after the edit: the editor has applied it. */
  isApplied(document: D): boolean {
    return this.shown?.document === document && this.all(document) === this.shown.applied;
  }

  dispose(): void {
    this.view.dispose();
  }

  private prepared(document: D, { id, edits }: Suggestion): { item: Item; applied: string } {
    const text = (start: Range['start'], end: Range['end']) => this.editor.text(document, { start, end });
    const edit = merged(edits, text);
    const applied = text(START, edit.range.start) + edit.text + text(edit.range.end, END);
    return { item: { id, edit }, applied: linesOf(applied).join('\n') };
  }

  private all(document: D): string {
    return linesOf(this.editor.text(document, { start: START, end: END })).join('\n');
  }
}
