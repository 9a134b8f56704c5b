/** The next edit in the editor: asked for, drawn, jumped to, applied or rejected. */

import * as vscode from 'vscode';
import { LSPErrorCodes, ResponseError } from 'vscode-languageclient/node';
import { selections } from './client';
import { Drawing, lineText, toRange } from './drawing';
import { type Edit, type Suggestion, endAfterAll, rebase } from './edits';
import type { InlineEdits } from './inlineEdits';
import { hint, nearest, onScreen, tabActs } from './placing';
import { SCHEMES, type Server } from './server';

interface Answer {
  edits: (Edit & { command?: { arguments?: unknown[] } })[];
  reason?: string;
}

const FIRST_OF_LSP = { invoked: 1, automatic: 2 };

export class NextEdit implements vscode.Disposable {
  private shown: { document: vscode.TextDocument; suggestion: Suggestion } | undefined;
  private jumpedTo: vscode.Position | undefined;
  private timer: NodeJS.Timeout | undefined;
  private asked: vscode.CancellationTokenSource | undefined;
  private view: InlineEdits<vscode.TextDocument> | undefined;
  private readonly drawing = new Drawing();
  private readonly parts: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.parts = [
      this.drawing,
      vscode.workspace.onDidChangeTextDocument((event) => {
        this.onChange(event);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (document === this.shown?.document) this.clear();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.clear('redraft.ignore');
      }),
      vscode.window.onDidChangeTextEditorSelection(() => {
        this.draw();
      }),
      vscode.window.onDidChangeTextEditorVisibleRanges(() => {
        this.draw();
      }),
    ];
  }

  /** `invoked`: the user asked, and hears when there is none. */
  async ask(invoked: boolean): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const client = this.server.running ? this.server.client : undefined;
    if (!editor || !client || !SCHEMES.includes(editor.document.uri.scheme)) {
      if (invoked) void vscode.window.showInformationMessage('Redraft is not running here.');
      return;
    }
    if (this.server.snoozed && !invoked) return;
    this.cancel();
    const { document } = editor;
    const { version } = document;
    const source = (this.asked = new vscode.CancellationTokenSource());
    const { line, character } = editor.selection.active;
    const params = {
      textDocument: { uri: client.code2ProtocolConverter.asUri(document.uri), version },
      position: { line, character },
      context: { triggerKind: invoked ? FIRST_OF_LSP.invoked : FIRST_OF_LSP.automatic },
      selections: selections(),
    };
    try {
      const answer = await client.sendRequest<Answer>('redraft/nextEdit', params, source.token);
      if (this.asked === source && document.version === version) this.receive(document, answer, invoked);
    } catch (error) {
      if (source.token.isCancellationRequested) return;
      // The server withdraws it for a completion; what has changed since is still worth a question.
      if (withdrawn(error)) this.later(pause());
      else this.log.warn(`next edit: ${String(error)}`);
    }
  }

  /**
   * Tab: as `accept` where Tab acts, else what Tab does without us. Looked at once more here, because
   * the editor chooses the command by context keys, and they come later than the cursor's moves.
   */
  async tab(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor && editor.document === this.shown?.document && this.tabActsIn(editor)) await this.accept();
    else await vscode.commands.executeCommand('tab');
  }

  /** Jump to the nearest edit when it is out of sight, apply all when it is in sight. */
  async accept(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor || !this.shown || editor.document !== this.shown.document) return;
    const { suggestion } = this.shown;
    const index = nearest(suggestion.edits, editor.selection.active.line);
    const target = suggestion.edits[index];
    if (!target) return;
    if (!onScreen(target, visibleLines(editor))) {
      this.jump(editor, target);
      return;
    }
    this.clear();
    const place = endAfterAll(suggestion.edits, index);
    const done = await editor.edit((builder) => {
      for (const { range, text } of suggestion.edits) builder.replace(toRange(range), text);
    });
    if (!done) {
      this.log.warn('the editor did not take the edit');
      return;
    }
    if (place) moveTo(editor, new vscode.Position(place.line, place.character));
    this.server.tell('redraft.accept', suggestion.id);
    this.later(0); // nothing is being typed, and the next one may be ready
  }

  reject(): void {
    this.clear('redraft.reject');
  }

  /** Take away what is shown; `outcome` is the command that tells the server why. */
  clear(outcome?: string): void {
    this.cancel();
    const shown = this.shown;
    this.shown = this.jumpedTo = undefined;
    if (shown && outcome) this.server.tell(outcome, shown.suggestion.id);
    if (shown) this.draw();
  }

  /** Show next edits by this view of the editor's from now on; undefined: draw them here. */
  showBy(view: InlineEdits<vscode.TextDocument> | undefined): void {
    this.clear();
    this.view?.dispose();
    this.view = view;
  }

  dispose(): void {
    this.showBy(undefined);
    for (const part of this.parts) part.dispose();
  }

  private cancel(): void {
    clearTimeout(this.timer);
    this.asked?.cancel();
    this.asked?.dispose();
    this.asked = undefined;
  }

  private onChange({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (!contentChanges.length) return;
    if (this.view?.isApplied(document)) this.clear(); // the command that comes with it tells the server
    if (this.shown?.document === document) {
      const changes = contentChanges.map(({ range, text }) => ({ range, text }));
      const suggestion = rebase(this.shown.suggestion, changes);
      if (suggestion) {
        this.shown = { document, suggestion };
        this.draw();
      } else {
        this.clear('redraft.ignore');
      }
    }
    if (vscode.window.activeTextEditor?.document !== document) return;
    this.cancel();
    this.later(pause());
  }

  /** Ask after a pause, and not before a completion at the cursor has its answer. */
  private later(delay: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.server.completing) this.later(pause());
      else void this.ask(false);
    }, delay);
  }

  private receive(document: vscode.TextDocument, answer: Answer, invoked: boolean): void {
    const id = answer.edits[0]?.command?.arguments?.[0];
    if (typeof id !== 'string') {
      this.clear();
      const why = answer.reason ?? 'no answer';
      if (invoked) void vscode.window.showInformationMessage(`Redraft: no next edit (${why})`);
      return;
    }
    const edits = answer.edits.map(({ range, text }) => ({ range, text }));
    this.shown = { document, suggestion: { id, edits } };
    this.jumpedTo = undefined;
    this.draw();
    this.server.tell('redraft.shown', id);
  }

  private jump(editor: vscode.TextEditor, target: Edit): void {
    const { line, character } = target.range.start;
    this.jumpedTo = editor.document.validatePosition(new vscode.Position(line, character));
    moveTo(editor, this.jumpedTo);
  }

  private draw(): void {
    this.view?.show(this.shown);
    if (this.view) return;
    for (const editor of vscode.window.visibleTextEditors) {
      const mine = this.shown?.document === editor.document ? this.shown.suggestion.edits : [];
      this.drawIn(editor, mine);
    }
    const editor = vscode.window.activeTextEditor;
    const visible = editor !== undefined && editor.document === this.shown?.document;
    const acts = visible && this.tabActsIn(editor);
    void vscode.commands.executeCommand('setContext', 'redraft.nextEditVisible', visible);
    void vscode.commands.executeCommand('setContext', 'redraft.tabActs', acts);
  }

  private drawIn(editor: vscode.TextEditor, edits: Edit[]): void {
    const { line } = editor.selection.active;
    const target = edits[nearest(edits, line)];
    const far = editor === vscode.window.activeTextEditor && target && !onScreen(target, visibleLines(editor));
    this.drawing.draw(editor, edits, far ? hint(target, line) : '');
  }

  private tabActsIn(editor: vscode.TextEditor): boolean {
    const at = editor.selection.active;
    const jumped = this.jumpedTo?.isEqual(at) ?? false;
    return tabActs(at, (line) => lineText(editor.document, line), jumped);
  }
}

/** Whether the server itself has ended the request, for a newer one. */
function withdrawn(error: unknown): boolean {
  return error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled;
}

/** Milliseconds between a change and the question. */
function pause(): number {
  return vscode.workspace.getConfiguration('redraft').get('nextEditDelayMs', 100);
}

function visibleLines(editor: vscode.TextEditor) {
  return editor.visibleRanges.map(({ start, end }) => ({ start: start.line, end: end.line }));
}

function moveTo(editor: vscode.TextEditor, at: vscode.Position): void {
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
