/** The language client: what our server hears beyond the library's own messages, and when it is not asked. */

import * as vscode from 'vscode';
import { type DynamicFeature, LanguageClient, type Middleware, type StaticFeature } from 'vscode-languageclient/node';

const EXECUTE_COMMAND = 'workspace/executeCommand';
const INLINE_COMPLETION = 'textDocument/inlineCompletion';

/**
 * Without the feature that makes each command of the server one of the editor's. Some of the names that
 * the server answers to are other extensions' too, and the second who registers a name fails.
 */
export class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if ('registrationType' in feature && feature.registrationType.method === EXECUTE_COMMAND) return;
    super.registerFeature(feature);
  }
}

/** What the middleware asks of its surroundings. */
export interface Asking {
  settings: () => Record<string, unknown>;
  snoozed: () => boolean;
  /** An answer is awaited (1) or there (-1). */
  awaits: (change: 1 | -1) => void;
}

export function middleware({ settings, snoozed, awaits }: Asking): Middleware {
  return {
    workspace: { configuration: (params) => params.items.map(settings) },
    provideInlineCompletionItems: async (document, position, context, token, next) => {
      const automatic = context.triggerKind === vscode.InlineCompletionTriggerKind.Automatic;
      if (automatic && snoozed()) return null;
      awaits(1);
      try {
        return await next(document, position, context, token);
      } finally {
        awaits(-1);
      }
    },
    sendRequest: (type, params, token, next) => {
      const method = typeof type === 'string' ? type : type.method;
      if (method === INLINE_COMPLETION) Object.assign(params ?? {}, { selections: selections() });
      return next(type, params, token);
    },
  };
}

/** How many cursors the active editor has; the server is silent when there are several. */
export function selections(): number {
  return vscode.window.activeTextEditor?.selections.length ?? 1;
}
