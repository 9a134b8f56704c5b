/** What of VS Code's proposed API is used, in its words: items that are edits, and what became of them. */

import * as vscode from 'vscode';
import { toRange } from './drawing';
import { InlineEdits, type Item, type Provider } from './inlineEdits';
import { SCHEMES } from './server';

type Document = vscode.TextDocument;

interface ProposedItem extends vscode.InlineCompletionItem {
  isInlineEdit: true;
  ours: Item;
}

/** Every member but the first is proposed; the editor refuses the second where the API is withheld. */
interface ProposedProvider extends vscode.InlineCompletionItemProvider {
  handleDidShowCompletionItem: () => void;
  handleEndOfLifetime: (item: ProposedItem, reason: { kind: number }) => void;
  onDidChange: vscode.Event<void>;
}

function register(ours: Provider<Document>): { refresh: () => void; dispose: () => void } {
  const changed = new vscode.EventEmitter<void>();
  const provider: ProposedProvider = {
    provideInlineCompletionItems: (document) => ours.items(document).map(proposedItem),
    handleDidShowCompletionItem: () => undefined, // the server has been told already
    handleEndOfLifetime: ({ ours: item }, { kind }) => {
      ours.ended(item, kind);
    },
    onDidChange: changed.event,
  };
  const registered = vscode.languages.registerInlineCompletionItemProvider(SCHEMES.map((scheme) => ({ scheme })), provider);
  return {
    refresh: () => {
      changed.fire();
    },
    dispose: () => {
      registered.dispose();
      changed.dispose();
    },
  };
}

function proposedItem(ours: Item): ProposedItem {
  const command = { title: 'Accept', command: 'redraft.accept', arguments: [ours.id] };
  return { insertText: ours.edit.text, range: toRange(ours.edit.range), command, isInlineEdit: true, ours };
}

/** The editor's own view of next edits. Undefined, and the user told, where the editor withholds it. */
export function inlineEdits(rejected: () => void, log: vscode.LogOutputChannel): InlineEdits<Document> | undefined {
  try {
    return new InlineEdits({ register, text: (document, range) => document.getText(toRange(range)), rejected });
  } catch (error) {
    log.warn(`redraft.inlineEdits: ${String(error)}`);
    void vscode.window.showWarningMessage(
      'Redraft: this VS Code does not let extensions use its own view of next edits, so Redraft draws them itself. ' +
        'To allow it, start VS Code with `--enable-proposed-api redraft.redraft`; else switch off `redraft.inlineEdits`.',
    );
    return undefined;
  }
}
