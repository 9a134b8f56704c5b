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

interface ProposedProvider extends vscode.InlineCompletionItemProvider {
  handleEndOfLifetime: (item: ProposedItem, reason: { kind: number }) => void;
}

/** The editor throws where the third argument is given and the API is withheld. */
type ProposedRegister = (
  selector: vscode.DocumentSelector,
  provider: ProposedProvider,
  metadata: { groupId: string },
) => vscode.Disposable;

const GROUP = 'next-edit';

function register(ours: Provider<Document>): { refresh: () => void; dispose: () => void } {
  const provider: ProposedProvider = {
    provideInlineCompletionItems: (document) => ours.items(document).map(proposedItem),
    handleEndOfLifetime: ({ ours: item }, { kind }) => {
      ours.ended(item, kind);
    },
  };
  const selector = SCHEMES.map((scheme) => ({ scheme }));
  const registerProposed = vscode.languages.registerInlineCompletionItemProvider as ProposedRegister;
  const registered = registerProposed(selector, provider, { groupId: GROUP });
  return {
    // The provider's own event would not do: of a text that has been asked about the editor asks only when told to.
    refresh: () => {
      void vscode.commands.executeCommand('editor.action.inlineSuggest.trigger', { providerId: `redraft.redraft:${GROUP}` });
    },
    dispose: () => {
      registered.dispose();
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
